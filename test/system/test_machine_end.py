"""A Node that is deleted with its Cluster API Machine stays deleted; any other comes back as it was.
Cluster API is played by what it does to a Node: its annotation, the cordon, the deletion."""
import json
import shutil

import pytest

from harness.commands import run_beside
from harness.programs import free_port, get_page
from harness.rig import wait_until

UUID = "2d55eb75-ed44-431e-9898-e26241198918"
NEW_UUID = "3887305e-1f0c-4c8e-9d6a-5b1f0f1e2d3c"
MACHINE = "hpc-8lfpj-759d9"
LEASE = 10  # seconds, renewed four times within them
BACKOFFS = 6  # seconds: several attempts of any other deleted Node, and two renewals of the lease


@pytest.fixture(name="machine")
def node_of_a_machine(rig):
    """A Node that Cluster API has matched with its Machine; rig.port serves /status."""
    rig.port = free_port()
    rig.configure(kubernetes={"leaseDuration": f"{LEASE}s"}, endpoint={"healthzPort": rig.port})
    rig.provision(UUID)
    rig.start_and_know()
    rig.wait_renewed()
    annotate(rig)
    return rig


def annotate(rig):
    rig.admin.merge(rig.path, {"metadata": {"annotations": {
        "cluster.x-k8s.io/machine": MACHINE, "cluster.x-k8s.io/cluster-name": "c1"}}})


def cordon(rig):
    rig.admin.merge(rig.path, {"spec": {"unschedulable": True}})


def end_file(rig):
    return rig.state_dir / "node-end.json"


def delete_with_machine(rig):
    """What Cluster API does at the end, without a moment between."""
    cordon(rig)
    rig.admin.delete(rig.path)
    rig.wait_log(f"was deleted with its Machine {MACHINE}")


def assert_stays_deleted(rig):
    since = rig.audit.mark()
    with pytest.raises(TimeoutError):
        rig.wait(lambda node: node is not None, timeout=BACKOFFS)
    assert [one for one in rig.audit.requests(since)
            if one[1] in ("create", "update", "patch")
            and one[2].split("/")[0] in ("nodes", "leases")] == []
    assert rig.daemon.process.poll() is None


def status_of(rig):
    return json.loads(get_page(rig.port, "/status")[1])


def test_node_deleted_with_its_machine_stays_deleted(machine):
    """The sequence of Cluster API with a host that runs on: power-off failed, or is disabled."""
    delete_with_machine(machine)
    assert_stays_deleted(machine)
    # Each place that says it.
    told = status_of(machine)
    assert not told["registered"] and not told["healthy"]
    assert f"was deleted with its Machine {MACHINE}" in told["refusal"]
    shown = run_beside(machine, "status")
    assert shown.returncode == 1 and MACHINE in shown.stdout
    checked = json.loads(run_beside(machine, "check", "-o", "json").stdout)
    node = [finding for finding in checked["findings"] if finding["subject"] == "node"]
    assert MACHINE in node[0]["found"] and "node.recreateAfter" in node[0]["fix"]
    # A restart in the same boot changes nothing.
    machine.stop()
    before = machine.log().count("was deleted with its Machine")
    machine.start(ready=False)
    wait_until(lambda: machine.log().count("was deleted with its Machine") > before, what="it said again")
    assert_stays_deleted(machine)


def test_deletion_while_the_daemon_is_down(machine):
    """The cordon had been seen, so it is known whose end this was."""
    cordon(machine)
    wait_until(end_file(machine).exists, what="the cordon to be saved")
    machine.stop()
    machine.admin.delete(machine.path)
    machine.start(ready=False)
    machine.wait_log(f"was deleted with its Machine {MACHINE}")
    assert_stays_deleted(machine)


def test_reboot_registers_again(machine):
    delete_with_machine(machine)
    machine.stop()
    saved = json.loads(end_file(machine).read_text())
    saved["bootID"] = "0a8a6f5e-0000-4000-8000-000000000001"  # the file is of the boot before
    end_file(machine).write_text(json.dumps(saved))
    machine.start()
    assert "unschedulable" not in machine.node()["spec"]
    assert not end_file(machine).exists()


def test_broken_file_is_named_and_does_not_hold_up(machine):
    delete_with_machine(machine)
    machine.stop()
    end_file(machine).write_text("{")
    machine.start()
    assert "node-end.json is broken" in machine.log()


@pytest.mark.parametrize("renamed", [False, True], ids=["new uuid", "another name"])
def test_host_provisioned_anew_registers_at_once(machine, renamed):
    delete_with_machine(machine)
    machine.stop()
    if renamed:
        machine.name += "-b"
        machine.kubeconfig = machine.plane.node_kubeconfig(machine.name)
        machine.configure(endpoint={"healthzPort": machine.port})
    machine.provision(UUID if renamed else NEW_UUID)
    machine.start()
    node = machine.node()
    assert node["metadata"]["labels"]["metal3.io/uuid"] == (UUID if renamed else NEW_UUID)
    assert "unschedulable" not in node["spec"]


def test_another_credential_registers_at_once(machine):
    delete_with_machine(machine)
    fresh = machine.plane.node_kubeconfig(machine.name)
    shutil.copyfile(fresh, machine.directory / "fresh")
    (machine.directory / "fresh").replace(machine.kubeconfig)
    machine.wait(lambda node: node is not None)
    machine.wait_log("may be registered again")


def test_recreate_after(machine):
    machine.stop()
    machine.configure(kubernetes={"leaseDuration": f"{LEASE}s"}, node={"recreateAfter": "4s"})
    machine.start()
    machine.wait_log("belongs to this machine; adopted")  # what is not watched yet is not known
    delete_with_machine(machine)
    node = machine.wait(lambda node: node is not None)
    assert node["spec"]["unschedulable"] is True
    assert node["spec"]["providerID"] == f"metal3://metal3/node-0/{machine.name}"


def test_node_that_somebody_makes_is_adopted(machine):
    delete_with_machine(machine)
    made = machine.admin.create("/api/v1/nodes", {"metadata": {"name": machine.name}})
    node = machine.wait(lambda node: node and any(
        entry["type"] == "SlurmdReady" for entry in node["status"].get("conditions", [])))
    assert node["metadata"]["uid"] == made["metadata"]["uid"]


@pytest.mark.parametrize("cordoned", [False, True], ids=["not cordoned", "of no Machine"])
def test_any_other_node_comes_back_as_it_was(rig, cordoned):
    rig.provision(UUID)
    rig.start_and_know()
    if cordoned:
        cordon(rig)
    else:
        annotate(rig)
    before = rig.node()
    rig.admin.delete(rig.path)
    node = rig.wait(lambda node: node and
                    node["metadata"]["uid"] != before["metadata"]["uid"])
    assert node["spec"]["providerID"] == before["spec"]["providerID"]
    assert node["spec"].get("unschedulable", False) == cordoned
    if cordoned:  # a node credential may create it so; the controller adds its taint
        rig.wait(lambda node: any(taint["key"] == "node.kubernetes.io/unschedulable"
                                  for taint in node["spec"]["taints"]))
