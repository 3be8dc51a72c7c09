"""The user data of packaging/cloud-init: by cloud-init's own judgement, and what a node makes of
it."""
import base64
import json
import os
import pathlib
import re
import stat
import subprocess

import pytest
import yaml

from harness.api import repository, wait_node
from harness.daemon import BINARY, Slurmlet
from harness.programs import CLIENTS, free_port
from harness.rig import GENERAL_WAIT, metal3_metadata

CLOUD_INIT = repository() / "packaging/cloud-init"
OVERLAY = repository() / "deploy/metal3/overlays/example"
PACKAGES = CLIENTS.parent / "lib/python3/dist-packages"
CREDENTIAL = "/etc/credstore/slurmlet.bootstrap-kubeconfig"
CONFIG = "/etc/slurmlet/config.d/10-site.yaml"
SENTINEL = "/run/cluster-api/bootstrap-success.complete"


def schema(path):
    """(exit code, output) of cloud-init's check of user data."""
    assert (PACKAGES / "cloudinit").is_dir(), "cloud-init is missing; run ./dev system"
    done = subprocess.run(
        ["/usr/bin/python3", "-m", "cloudinit.cmd.main", "schema", "--config-file", str(path)],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(PACKAGES)})
    return done.returncode, done.stdout + done.stderr


def with_configuration(text):
    """The same with the file that is commented out."""
    changed, count = re.subn(r"(?m)^( +)# (- path: |  )", r"\1\2", text)
    assert count > 5, "no file is commented out"
    return changed


def rendered_template(change=str):
    """What the provider makes of the VirtualKubeletConfigTemplate: its files, with content of
    Secrets filled in, and its commands."""
    template, secret = yaml.safe_load_all(change(
        (CLOUD_INIT / "virtual-kubelet-config-template.yaml").read_text()))
    spec = template["spec"]["template"]["spec"]
    secrets = {secret["metadata"]["name"]: secret["stringData"]}
    files = []
    for one in spec["files"]:
        one = dict(one)
        if "contentFrom" in one:
            of = one.pop("contentFrom")["secret"]
            one["content"] = secrets[of["name"]][of["key"]]
        files.append(one)
    return {"write_files": files, "runcmd": spec["commands"]}


def user_data(name, directory):
    """A file with one of the ways to say it."""
    plain = (CLOUD_INIT / "user-data.yaml").read_text()
    texts = {
        "plain": plain,
        "with configuration": with_configuration(plain),
        "with packages": plain + (CLOUD_INIT / "packages.yaml").read_text(),
        "overlay": (OVERLAY / "user-data.yaml").read_text(),
        "virtual-kubelet": "#cloud-config\n" + json.dumps(rendered_template(), indent=1),
        "virtual-kubelet, with configuration": "#cloud-config\n" + json.dumps(
            rendered_template(with_configuration), indent=1)}
    path = directory / "user-data.yaml"
    path.write_text(texts[name])
    return path


ALL = ["plain", "with configuration", "with packages", "overlay", "virtual-kubelet",
       "virtual-kubelet, with configuration"]


@pytest.mark.parametrize("name", ALL)
def test_cloud_init_takes_it(name, tmp_path):
    code, output = schema(user_data(name, tmp_path))
    assert code == 0, output
    assert "Valid cloud-config" in output


@pytest.mark.parametrize("right, wrong", [
    ("permissions:", "permission:"), ("runcmd:\n", "runcmd: 3\n#"),
    ("write_files:", "write_files: x\n#")])
def test_cloud_init_refuses_mistakes(right, wrong, tmp_path):
    """So the test above can fail."""
    path = user_data("plain", tmp_path)
    text = path.read_text()
    head, tail = text.split(right, 1)
    if wrong.startswith("permission:"):
        path.write_text(head + wrong + tail)
    else:  # one key with another value, and nothing else
        path.write_text("#cloud-config\n" + wrong.split("\n", maxsplit=1)[0] + "\n")
    assert schema(path)[0] == 1


@pytest.mark.parametrize("name", ALL)
def test_it_says_what_a_node_needs(name, tmp_path):
    data = yaml.safe_load(user_data(name, tmp_path).read_text())
    files = {one["path"]: one for one in data["write_files"]}
    # The image's configuration stays, unless somebody wants another.
    assert set(files) == {CREDENTIAL} | ({CONFIG} if "configuration" in name else set())
    if CONFIG in files:
        assert files[CONFIG]["permissions"] == "0644"
        assert yaml.safe_load(files[CONFIG]["content"])["kind"] == "SlurmletConfiguration"
    # The token is for root alone, and no file waits for a user that is not there yet.
    assert files[CREDENTIAL]["permissions"] == "0600"
    assert all("token" not in one["content"] for path, one in files.items() if path != CREDENTIAL)
    assert all(one.get("owner", "root:root") == "root:root" for one in files.values())
    unit = (repository() / "systemd/slurmlet.service").read_text().splitlines()
    assert "LoadCredential=" + pathlib.Path(CREDENTIAL).name in unit
    kubeconfig = yaml.safe_load(files[CREDENTIAL]["content"])
    assert set(kubeconfig["users"][0]["user"]) == {"token"}
    commands = [one if isinstance(one, str) else " ".join(one) for one in data["runcmd"]]
    assert f"slurmlet wait-registered --timeout=300 --sentinel={SENTINEL}" == commands[-1]
    # A service that waits for its configuration already gets the credential by a restart only.
    assert "systemctl restart --no-block slurmlet.service" in commands
    # Nothing for cloud-init's templates: the daemon reads the instance data itself.
    text = user_data(name, tmp_path).read_text()
    assert "{{" not in text and "{%" not in text
    assert not text.startswith("## template")


def test_overlay_has_the_same_user_data_but_for_the_server():
    ours = (CLOUD_INIT / "user-data.yaml").read_text().splitlines()
    theirs = (OVERLAY / "user-data.yaml").read_text().splitlines()
    assert [b for a, b in zip(ours, theirs, strict=True) if a != b] == \
        ["            server: https://k8s.alps.example.org:6443"]


def test_a_node_registers_with_what_it_wrote(plane, tmp_path):
    """The files of the user data, with this cluster's address, CA and token in their places, make
    a Node with Metal3's identity out of a machine that has the package and nothing else."""
    config = yaml.safe_load(plane.kubectl_output("config", "view", "--raw", "-o", "yaml"))
    server = config["clusters"][0]["cluster"]["server"]
    authority = base64.b64encode((plane.directory / "pki/ca.crt").read_bytes()).decode()
    kubeconfig = tmp_path / "bootstrap.kubeconfig"
    plane.run("bootstrap-kubeconfig", "--dir", plane.directory, "--out", kubeconfig)
    token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
    data = yaml.safe_load((CLOUD_INIT / "user-data.yaml").read_text())
    root = tmp_path / "root"
    for one in data["write_files"]:
        content = one["content"].replace("https://192.0.2.10:6443", server)
        content = content.replace("cmVwbGFjZSBtZQ==", authority)
        content = content.replace("abcdef.0123456789abcdef", token)
        path = root / one["path"].lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(int(one["permissions"], 8))
    assert stat.S_IMODE((root / CREDENTIAL.lstrip("/")).stat().st_mode) == 0o600
    metadata = tmp_path / "instance-data.json"
    name = "hpc-x7k2p-abcde"
    uuid = "8b2a2f8a-0000-4000-8000-000000000001"
    metadata.write_text(json.dumps(metal3_metadata(uuid, name, f"metal3/node-0/{name}")))
    arguments = ["--config", repository() / "packaging/config.yaml", "--metadata", metadata,
                 "--state-dir", tmp_path / "state", "--port", "0", "--healthz-port", free_port()]
    sentinel = tmp_path / "bootstrap-success.complete"
    # systemd would copy /etc/credstore for the service; the waiting command has no credentials.
    with Slurmlet(tmp_path / "daemon", arguments,
                  {"CREDENTIALS_DIRECTORY": str(root / "etc/credstore")}) as daemon:
        try:
            node, _ = wait_node(plane.admin, name, lambda one: one is not None, GENERAL_WAIT)
            assert node["spec"]["providerID"] == f"metal3://metal3/node-0/{name}"
            assert node["metadata"]["labels"]["metal3.io/uuid"] == uuid
            done = subprocess.run([str(BINARY), "wait-registered", "--timeout=60",
                                   f"--sentinel={sentinel}", *map(str, arguments)],
                                  capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            assert sentinel.exists()
        except BaseException:
            print(daemon.output()[-4000:])
            raise
        finally:
            daemon.stop()
            if plane.admin.find(f"/api/v1/nodes/{name}"):
                plane.admin.delete(f"/api/v1/nodes/{name}")
