"""`slurmlet join --dry-run` with the real API server: what it verifies before anything is written. The rest of a join
runs on a booted machine (test/machine/test_machine_leaves.py)."""
import subprocess

import pytest

from harness.bootstrap import bootstrap_token, ca_hash
from harness.daemon import BINARY

SECRETS = "/api/v1/namespaces/kube-system/secrets"


@pytest.fixture(name="join")
def join_to(plane, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("apiVersion: slurmlet.io/v1alpha1\nkind: SlurmletConfiguration\n"
                      f"stateDir: {tmp_path}/state\n")

    def run(token, ca=None):
        before = sorted(tmp_path.iterdir())
        done = subprocess.run(
            [BINARY, "join", f"{plane.admin.host}:{plane.admin.port}", "--token", token,
             "--discovery-token-ca-cert-hash", ca or ca_hash((plane.directory / "pki/ca.crt").read_text()),
             "--config", config, "--dry-run"],
            env={}, capture_output=True, text=True, check=False, timeout=60)
        assert sorted(tmp_path.iterdir()) == before
        assert token[7:] not in done.stdout + done.stderr
        return done.returncode, done.stdout + done.stderr
    return run


def test_a_token_is_accepted(join, plane, tmp_path):
    token = bootstrap_token(plane, tmp_path / "token").read_text().strip()
    code, said = join(token)
    assert code == 0, said
    assert f"bootstrapTokenFile: {tmp_path}/bootstrap-token" in said and not (tmp_path / "bootstrap-token").exists()


def test_what_is_not_accepted_is_named(join, plane, tmp_path):
    token = bootstrap_token(plane, tmp_path / "token").read_text().strip()
    secret = f"{SECRETS}/bootstrap-token-{token[:6]}"
    code, said = join(token, "sha256:" + "0" * 64)
    assert code == 1 and "does not match the expected hash" in said
    plane.admin.merge(secret, {"stringData": {"auth-extra-groups": "system:bootstrappers:without-rights"}})
    code, said = join(token)
    assert code == 1 and "403" in said and "kubeadm token create" in said
    plane.admin.merge(secret, {"stringData": {"expiration": "2020-01-01T00:00:00Z"}})
    code, said = join(token)
    assert code == 1 and f"token {token[:6]}" in said and "expired" in said


def test_nothing_is_believed_without_the_hash_of_its_ca(plane):
    done = subprocess.run([BINARY, "join", f"{plane.admin.host}:{plane.admin.port}", "--token",
                           "abcdef.0123456789abcdef"], env={}, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2 and "--discovery-token-ca-cert-hash" in done.stderr
