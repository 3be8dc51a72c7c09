"""kube/ against the real API server: runs the contract tests (test/unit/kube/contract), which are built
with AddressSanitizer and UBSan by the dev preset."""
import os
import subprocess

import pytest

from harness.api import repository

BINARY = repository() / "build/dev/kube_contract_test"


def test_kube_contract(plane):
    # What it has seen before this start it no longer tells a watch, which one of the tests needs.
    plane.ctl("restart", "kube-apiserver")
    if not BINARY.exists():
        pytest.fail(f"{BINARY} is missing; ./dev test builds it (cmake --build --preset dev)")
    environment = dict(
        os.environ, SLURMLET_TEST_NODE="contract",
        SLURMLET_TEST_KUBECONFIG=str(plane.node_kubeconfig("contract")),
        SLURMLET_TEST_ADMIN_KUBECONFIG=str(plane.admin_kubeconfig))
    done = subprocess.run([BINARY], env=environment, capture_output=True, text=True, timeout=300)
    print(done.stdout[-4000:])
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    assert "SKIPPED" not in done.stdout
