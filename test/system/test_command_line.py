"""The command line and the configuration: virtual-kubelet's works as it was, mistakes are refused
with the place, the key and the cure."""
import json
import os
import re
import subprocess

import pytest

from harness.api import condition
from harness.daemon import BINARY
from harness.rig import GENERAL_WAIT

UUID = "1f6c1a52-32c7-4a93-8c58-7b7f5d3a2c11"
BAD_CONFIGURATION = 2


def run(*arguments, environment=None):
    """Runs slurmlet until it ends; the environment has nothing of Kubernetes."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("KUBE")}
    return subprocess.run([str(BINARY), *map(str, arguments)], capture_output=True, text=True,
                          env={**clean, **(environment or {})}, timeout=GENERAL_WAIT, check=False)


def refusal(*arguments, environment=None):
    """What slurmlet says when it refuses these arguments."""
    done = run(*arguments, environment=environment)
    assert done.returncode == BAD_CONFIGURATION, (done.returncode, done.stderr)
    return done.stderr


# -- virtual-kubelet's command line --------------------------------------------


@pytest.fixture(name="virtual_kubelet")
def link_named_virtual_kubelet(rig):
    """The binary under the name that the old unit file starts."""
    link = rig.directory / "virtual-kubelet"
    link.symlink_to(BINARY)
    return link


def provider_config(rig, **entry):
    path = rig.directory / "vkubelet-mock.json"
    path.write_text(json.dumps({rig.name: {"cpu": "0", "memory": "0Gi", "pods": "0", **entry}}))
    return path


def test_virtual_kubelet_command_line_works_unchanged(rig, virtual_kubelet):
    file = provider_config(rig, pods="5", labels={"metal3.io/uuid": UUID, "site.example/cell": "c1"})
    arguments = ["--provider", "mock", "--nodename", rig.name, "--provider-config", file,
                 "--kubeconfig", rig.kubeconfig]
    # Only what a test must keep off the machine is added.
    rig.start(arguments + ["--state-dir", rig.state_dir, "--healthz-port", "0"],
              program=virtual_kubelet)
    node = rig.node()
    assert node["metadata"]["labels"]["metal3.io/uuid"] == UUID
    assert node["metadata"]["labels"]["site.example/cell"] == "c1"
    assert node["metadata"]["labels"]["type"] == "virtual-kubelet"
    assert node["status"]["capacity"]["cpu"] == str(os.cpu_count())
    assert node["status"]["capacity"]["pods"] == "0"
    assert condition(node, "Ready")["status"] == "True"
    assert rig.stop() < 5


def test_unknown_flag_is_refused_with_the_nearest_one(rig):
    text = refusal("--nodname", rig.name, "--kubeconfig", rig.kubeconfig)
    assert "unknown flag --nodname; did you mean --nodename?" in text


def test_flag_of_virtual_kubelet_without_effect_is_accepted_with_a_warning(rig):
    rig.start(rig.arguments() + ["--pod-sync-workers", "10"])
    assert "warning --pod-sync-workers has no effect" in rig.log()


# -- the configuration file ----------------------------------------------------


def config_file(rig, text):
    path = rig.directory / "bad.yaml"
    path.write_text("apiVersion: slurmlet.io/v1alpha1\nkind: SlurmletConfiguration\n" + text)
    return path


def test_all_mistakes_are_named_at_once(rig):
    path = config_file(rig, "slurm: {pollInterval: soon}\nnode: {readyFollows: slurmctld}\n")
    text = refusal("--kubeconfig", rig.kubeconfig, "--config", path)
    assert f"{path}:3:" in text and f"{path}:4:" in text
    assert "daemon, slurmd, slurm" in text


# -- credentials -----------------------------------------------------------------


def test_missing_kubeconfig_is_named(rig):
    missing = rig.directory / "none.kubeconfig"
    done = run("--nodename", rig.name, "--kubeconfig", missing)
    # Not 2: it may be put there later, and systemd starts slurmlet again.
    assert done.returncode == 1
    assert f"kubeconfig: open {missing}: No such file" in done.stderr


def test_no_api_server_at_all_says_what_to_set():
    text = refusal("--nodename", "n")
    assert "no API server is configured; run slurmlet join" in text


def test_credential_of_another_node_is_refused(rig):
    text = refusal("--nodename", "somebody-else", "--kubeconfig", rig.kubeconfig)
    assert (f'the client certificate is for node "{rig.name}", but this node\'s name is '
            f'"somebody-else"') in text
    assert f"set --nodename {rig.name}, or a credential for somebody-else" in text


def test_no_secret_is_logged(rig):
    rig.start()
    text = rig.log()
    assert "PRIVATE KEY" not in text
    kubeconfig = rig.kubeconfig.read_text()
    for secret in re.findall(r"(?:client-key-data|token): \"?([\w+/=-]{16,})", kubeconfig):
        assert secret not in text


# -- help and documentation --------------------------------------------------------


def test_help_and_version_need_nothing():
    done = run("--help")
    assert done.returncode == 0 and "--slurm-poll-interval" in done.stdout
    assert re.fullmatch(r"slurmlet \d+\.\d+\.\d+\n", run("--version").stdout)
