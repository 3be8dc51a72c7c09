"""What a node looks like once its daemon, an unprivileged process, has registered it."""
import json
import os
import pathlib
import re
import subprocess

import pytest

from harness.api import SLURM_CORE, condition, quantity
from harness.daemon import BINARY
from harness.rig import GENERAL_WAIT, wait_until

UUID = "8b2a2f8a-6d4e-4a1c-9b1d-3c5f0e7a9d21"
CORE = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False",
        "NetworkUnavailable": "False", "SlurmdReady": "True", "SlurmNodeStateIdle": "True",
        **{"SlurmNodeState" + name: "False" for name in SLURM_CORE[1:]}}


def prepare(rig):
    rig.provision(UUID)
    rig.configure(node={"labels": {"site.example/rack": "r7"}})


@pytest.fixture(scope="module", name="node")
def registered_node(shared_rig):
    return shared_rig.node()


@pytest.fixture(scope="module", name="slurm_version")
def version_of_slurmd():
    text = subprocess.run(["slurmd", "-V"], check=True, capture_output=True, text=True,
                          env=dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin")).stdout
    return text.split()[1]


def test_start_to_ready_is_recorded(shared_rig, timing):
    timing("start to Ready", shared_rig.start_seconds)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start it as somebody else")
def test_runs_without_any_privilege(shared_rig):
    status = pathlib.Path(f"/proc/{shared_rig.daemon.pid}/status").read_text()
    assert re.search(r"^Uid:\s+65534\s+65534\s+65534", status, re.M)
    for kind in ("Inh", "Prm", "Eff", "Amb"):
        assert re.search(rf"^Cap{kind}:\s+0+$", status, re.M), kind


def test_labels(shared_rig, node, slurm_version):
    labels = node["metadata"]["labels"]
    expected = {"kubernetes.io/hostname": shared_rig.name, "kubernetes.io/os": "linux",
                "type": "virtual-kubelet", "metal3.io/uuid": UUID,
                "node.kubernetes.io/exclude-from-external-load-balancers": "true",
                "node.kubernetes.io/exclude-disruption": "true",
                "slurmlet.io/slurm-version": slurm_version, "slurmlet.io/slurm-cluster": "alps",
                "site.example/rack": "r7"}
    assert {key: labels.get(key) for key in expected} == expected
    assert labels["kubernetes.io/arch"] in ("amd64", "arm64")
    assert labels["slurmlet.io/version"]


def test_taints_keep_pods_away(node):
    ours = {(taint["value"], taint["effect"]) for taint in node["spec"]["taints"]
            if taint["key"] == "virtual-kubelet.io/provider"}
    assert ours == {("slurm", "NoSchedule"), ("slurm", "NoExecute")}


def test_not_ready_taint_is_removed_by_its_controller(shared_rig):
    def is_gone(node):
        return not [taint for taint in node["spec"]["taints"]
                    if taint["key"].startswith("node.kubernetes.io/")]
    shared_rig.wait(is_gone)


def test_provider_id_of_metal3(shared_rig, node):
    assert node["spec"]["providerID"] == f"metal3://metal3/node-0/{shared_rig.name}"


def test_no_room_for_pods_but_the_machine_s_resources(node):
    capacity, allocatable = node["status"]["capacity"], node["status"]["allocatable"]
    assert capacity["pods"] == allocatable["pods"] == "0"
    assert int(capacity["cpu"]) == os.cpu_count()
    assert 0 < int(allocatable["cpu"]) <= int(capacity["cpu"])
    mem_total = re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())[1]
    assert quantity(capacity["memory"]) == int(mem_total) * 1024
    assert capacity["ephemeral-storage"]


def test_gpus_of_slurm_s_gres(node):
    for kind in ("capacity", "allocatable"):
        assert node["status"][kind]["nvidia.com/gpu"] == "4"


def test_all_core_conditions_are_there(node):
    assert {name: condition(node, name).get("status") for name in CORE} == CORE


def test_every_condition_has_a_reason_a_message_and_times(node):
    for entry in node["status"]["conditions"]:
        assert re.fullmatch(r"[A-Z][A-Za-z]+", entry["reason"]), entry
        assert entry["message"], entry
        assert entry["lastTransitionTime"] and entry["lastHeartbeatTime"], entry


def test_node_info(node, slurm_version):
    info = node["status"]["nodeInfo"]
    assert info["kubeletVersion"] == ""
    assert info["containerRuntimeVersion"] == "slurm://" + slurm_version
    assert info["kernelVersion"] == os.uname().release
    assert info["operatingSystem"] == "linux"
    assert info["osImage"]
    boot_id = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert info["bootID"] == boot_id


def test_addresses_one_of_each_type_and_no_loopback(shared_rig, node):
    addresses = {entry["type"]: entry["address"] for entry in node["status"]["addresses"]}
    assert len(addresses) == len(node["status"]["addresses"])
    assert addresses["Hostname"] == shared_rig.name
    assert not addresses.get("InternalIP", "").startswith("127.")


def test_lease_belongs_to_the_node(shared_rig, node):
    lease = shared_rig.wait_renewed()
    owner = lease["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"]) == ("Node", shared_rig.name)
    assert owner["uid"] == node["metadata"]["uid"]
    assert lease["spec"]["leaseDurationSeconds"] == 40
    assert lease["spec"]["holderIdentity"].split("/")[0] == shared_rig.name


def test_kubectl_shows_it_ready(shared_rig):
    line = shared_rig.plane.kubectl_output("get", "node", shared_rig.name, "--no-headers")
    assert line.split()[1] == "Ready"


def test_annotations_hold_slurm_s_own_words(node):
    annotations = node["metadata"]["annotations"]
    assert annotations["slurmlet.io/slurm-state"] == "IDLE"
    assert annotations["slurmlet.io/slurm-node"] == "nid000001"
    assert annotations["slurmlet.io/slurm-gres"] == "gpu:a100:4"
    assert annotations["slurmlet.io/slurm-jobs"] == "0"
    assert annotations["slurmlet.io/slurm-partitions"]


def test_registered_event_in_kubectl_describe(shared_rig):
    event = shared_rig.wait_event("Registered")
    assert event["type"] == "Normal"
    assert event["message"] == ('registered as a zero-pod node of Slurm cluster "alps" '
                                f"(metal3 uuid {UUID})")
    described = shared_rig.plane.kubectl_output("describe", "node", shared_rig.name)
    assert re.search(r"Registered.*slurmlet.*registered as a zero-pod node", described)


# -- print-node ---------------------------------------------------------------


def print_node(rig, *arguments):
    """Runs `slurmlet print-node` as the daemon's user, without a kubeconfig."""
    command = [BINARY, "print-node", "--config", rig.config_path, "--metadata", rig.metadata_path,
               "--state-dir", rig.state_dir, *arguments]
    environment = {**os.environ, **rig.environment}
    environment.pop("KUBECONFIG", None)
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                          env=environment, timeout=GENERAL_WAIT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_print_node_json_is_the_registered_node(shared_rig, node):
    printed = json.loads(print_node(shared_rig, "-o", "json"))
    assert printed["metadata"]["name"] == shared_rig.name
    # The others are those that a controller copies.
    added = {"beta.kubernetes.io/arch", "beta.kubernetes.io/os"}
    registered = {key: value for key, value in node["metadata"]["labels"].items()
                  if key not in added}
    assert printed["metadata"]["labels"] == registered
    assert printed["spec"]["providerID"] == node["spec"]["providerID"]
    for kind in ("capacity", "allocatable"):
        assert printed["status"][kind] == node["status"][kind]
    ours = [entry["type"] for entry in printed["status"]["conditions"]]
    assert sorted(ours) == sorted(entry["type"] for entry in node["status"]["conditions"])
    assert {entry["type"]: entry["status"] for entry in printed["status"]["conditions"]} == {
        entry["type"]: entry["status"] for entry in node["status"]["conditions"]}


def test_print_node_is_accepted_by_the_api_server(shared_rig):
    printed = json.loads(print_node(shared_rig))
    path = shared_rig.directory / "printed.json"
    path.write_text(json.dumps({**printed, "metadata": {**printed["metadata"], "name": "printed"}}))
    shown = shared_rig.plane.kubectl_output("create", "--dry-run=server", "-o", "json", "-f",
                                            str(path))
    parsed = json.loads(shown)
    assert parsed["kind"] == "Node"
    assert parsed["status"]["capacity"] == printed["status"]["capacity"]
    assert parsed["metadata"]["labels"] == printed["metadata"]["labels"]


def test_nothing_is_left_of_the_questions(shared_rig):
    """No scontrol or slurmd -V stays behind as a zombie."""
    def children():
        path = pathlib.Path(f"/proc/{shared_rig.daemon.pid}/task/{shared_rig.daemon.pid}/children")
        return path.read_text().split()
    wait_until(lambda: not children(), what="the daemon to have no children")
