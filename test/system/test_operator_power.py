"""slurmlet-operator power as SuspendProgram and ResumeProgram of a real slurmctld, with the real CRDs of
BareMetalHosts and Machines. The test plays the hosts: what baremetal-operator would switch off and on."""
import datetime
import subprocess
import types

import pytest
import yaml

from harness.api import Api, ApiError, condition, node_path, repository
from harness.operator_site import CRDS, MACHINES, OPERATOR, Site
from harness.rig import wait_until
from harness.service_account import apply, can
from harness.slow_front import SlowFront

NODES = ["pw001", "pw002"]
HOSTS = "/apis/metal3.io/v1alpha1/namespaces/default/baremetalhosts"
OFF = "reboot.metal3.io/slurmlet"
SKIP = "cluster.x-k8s.io/skip-remediation"
GROUP = "metal3.io"


@pytest.fixture(scope="module")
def programs(work):
    """SuspendProgram and ResumeProgram, which do nothing without the file `on`."""
    directory = work / "power"
    directory.mkdir()
    for verb in ("suspend", "resume"):
        path = directory / verb
        path.write_text(f'#!/bin/sh\n[ -e {directory}/on ] || exit 0\nexport PATH=/usr/bin:/bin:/usr/sbin:/sbin\n'
                        f'exec {OPERATOR} power {verb} "$1" --kubeconfig={directory}/config '
                        f'--slurm-conf="$(cat {directory}/conf)" >>{directory}/log 2>&1\n')
        path.chmod(0o755)
    return directory


@pytest.fixture(scope="module")
def cluster(own_slurm, programs):
    one = own_slurm(nodes=NODES, cpus=2, cluster_name="power", power_save=True,
                    node_hosts={name: name for name in NODES}, conf_lines=[
        f"SuspendProgram={programs}/suspend", f"ResumeProgram={programs}/resume"])
    (programs / "conf").write_text(str(one.conf_path))
    return one


@pytest.fixture(scope="module")
def hosts(plane):
    """BareMetalHosts by their own CRD, and the rights that power.yaml gives."""
    [directory] = (repository() / "build/crds").glob("baremetal-operator-*")
    crd = yaml.safe_load((directory / "metal3.io_baremetalhosts.yaml").read_text())
    plane.admin.create(CRDS, crd)

    def is_served():
        try:
            return plane.admin.find(HOSTS) is not None
        except ApiError:
            return False
    wait_until(is_served, what="the BareMetalHosts")
    apply(plane, repository() / "deploy/operator/admission.yaml")
    yield plane.admin
    for name in ("admission.yaml", "power.yaml"):
        plane.kubectl_output("delete", "--ignore-not-found", "-f", str(repository() / "deploy/operator" / name))
    plane.admin.delete(f"{CRDS}/{crd['metadata']['name']}")


@pytest.fixture
def granted(plane, account):
    apply(plane, repository() / "deploy/operator/power.yaml")
    wait_until(lambda: can(plane, "patch", "baremetalhosts", account.user, api_group=GROUP) and
               can(plane, "patch", "nodes/status", account.user), what="the rights")


@pytest.fixture
def site(plane, cluster, account, machines, hosts, programs, tmp_path):
    one = Site(plane, cluster, account, tmp_path)
    (programs / "config").write_text(account.kubeconfig(tmp_path).read_text())
    (programs / "on").unlink(missing_ok=True)
    for number, name in enumerate(NODES, 1):
        cluster.reset(name)
        one.add(name, name)
        hosts.create(HOSTS, {"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
                             "metadata": {"name": f"host{number}"}, "spec": {"online": True, "consumerRef": {
                                 "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Machine",
                                 "name": f"m3-{number}", "namespace": "default"}}})
        machines.add(f"m{number}", name)
        hosts.merge(f"{MACHINES}/m{number}", {"spec": {"providerID": f"metal3://default/host{number}/m3-{number}"}})
    yield one
    one.print_logs()
    print("--- SuspendProgram, ResumeProgram ---\n" +
          ((programs / "log").read_text() if (programs / "log").exists() else ""))
    one.end()
    (programs / "on").unlink(missing_ok=True)
    machines.finish_all()
    for number in (1, 2):
        hosts.delete(f"{HOSTS}/host{number}")
    for name in NODES:
        cluster.reset(name)


def power(site, programs, verb, nodes, *flags):
    return subprocess.run([OPERATOR, "power", verb, nodes, f"--kubeconfig={programs}/config",
                           f"--slurm-conf={site.slurm.conf_path}", *flags],
                          capture_output=True, text=True, check=False, timeout=60)


def marks(site, path):
    return site.api.get(path)["metadata"].get("annotations", {})


def is_off(site, number):
    return OFF in marks(site, f"{HOSTS}/host{number}")


def set_ready(site, name, status):
    """What the host's slurmlet reports, or node-lifecycle-controller."""
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    site.api.call("PATCH", node_path(name) + "/status", {"status": {"conditions": [
        {"type": "Ready", "status": status, "reason": "x", "message": "", "lastHeartbeatTime": now,
         "lastTransitionTime": now}]}}, "application/strategic-merge-patch+json")


def fall_asleep(site, name):
    """Slurm takes it for powered down; its host is still on."""
    site.slurm.command("scontrol", "update", f"nodename={name}", "state=power_down")
    wait_until(lambda: {"POWERED_DOWN", "POWERING_DOWN"} & set(site.state(name)), what=f"{name} to be powered down")


def test_slurmctld_switches_a_host_off_and_a_job_switches_it_on(site, granted, programs):
    (programs / "on").touch()
    set_ready(site, "pw001", "True")
    one = site.start("--leader-elect=false")
    site.slurm.command("scontrol", "update", "nodename=pw001", "state=power_down")
    wait_until(lambda: is_off(site, 1), what="the annotation of the BareMetalHost")
    assert marks(site, f"{MACHINES}/m1")[SKIP] == "slurmlet"
    site.slurm.daemon("stop", "slurmd:pw001")  # baremetal-operator has switched it off
    set_ready(site, "pw001", "Unknown")
    wait_until(lambda: "POWERED_DOWN" in site.state("pw001"), what="the state")
    wait_until(lambda: condition(site.node("pw001"), "SlurmNodeAsleep").get("reason") == "PoweredDown",
               what="the condition")
    one.kill()
    one = site.start("--leader-elect=false")
    assert not is_off(site, 2) and SKIP not in marks(site, f"{MACHINES}/m2")
    job = site.slurm.command("sbatch", "--parsable", "--output=/dev/null", "--chdir=/", "--nodelist=pw001",
                             "--wrap=exit 0").stdout.strip()
    wait_until(lambda: not is_off(site, 1), what="the annotation to go")
    wait_until(lambda: condition(site.node("pw001"), "SlurmNodeAsleep").get("reason") == "PoweringUp",
               what="the condition")
    assert marks(site, f"{MACHINES}/m1")[SKIP] == "slurmlet"  # it is not back yet
    site.slurm.daemon("start", "slurmd:pw001", "-b")
    wait_until(lambda: "JobState=COMPLETED" in site.slurm.command("scontrol", "show", "job", job).stdout, 90,
               "the job's end")
    site.wait_dumps("pw001", 2)
    assert SKIP in marks(site, f"{MACHINES}/m1")  # its Node is not Ready yet
    set_ready(site, "pw001", "True")
    wait_until(lambda: SKIP not in marks(site, f"{MACHINES}/m1"), what="the mark to go")
    assert not condition(site.node("pw001"), "SlurmNodeAsleep")


def test_a_node_in_service_is_not_switched_off(site, granted, programs):
    job = site.slurm.submit("pw001")
    done = power(site, programs, "suspend", "pw00[1-2]")
    assert done.returncode == 1
    assert "pw001: a job is on Slurm node pw001" in done.stderr
    assert "pw002: Slurm node pw002 is IDLE, and not being powered down" in done.stderr
    assert not is_off(site, 1) and not is_off(site, 2)
    assert SKIP not in marks(site, f"{MACHINES}/m1")
    site.slurm.command("scancel", job)


def test_a_host_that_has_another_consumer_is_left_alone(site, granted, programs):
    for name in NODES:
        fall_asleep(site, name)
    site.api.merge(f"{HOSTS}/host1", {"spec": {"consumerRef": {"name": "another"}}})
    done = power(site, programs, "suspend", "pw00[1-2],pw009")
    assert done.returncode == 1
    assert "pw001: BareMetalHost default/host1 is not of Metal3Machine m3-1" in done.stderr
    assert "pw009: no Machine has it" in done.stderr
    assert "pw002" not in done.stderr
    assert not is_off(site, 1) and is_off(site, 2)  # one failure holds up no other


def test_a_host_that_is_wanted_again_during_a_long_list_stays_on(plane, site, granted, programs, tmp_path):
    for name in NODES:
        fall_asleep(site, name)
    wait_until(lambda: "POWERED_DOWN" in site.state("pw002"), what="the state")
    client = types.SimpleNamespace(plane=plane, directory=tmp_path, kubeconfig=programs / "config")
    with SlowFront(client) as front:
        front.slow_down(6, lambda method, path: not path.startswith((f"{MACHINES}/m1", f"{HOSTS}/host1")))
        words = [OPERATOR, "power", "suspend", "pw00[1-2]", f"--kubeconfig={client.kubeconfig}",
                 f"--slurm-conf={site.slurm.conf_path}"]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as one:
            wait_until(lambda: any(f"{MACHINES}/m1" in path for _, path in front.requests), what="the first host")
            site.slurm.command("scontrol", "update", "nodename=pw002", "state=power_up")
            _, said = one.communicate(timeout=60)
    assert "pw002: Slurm node pw002 is" in said and "not being powered down" in said
    assert is_off(site, 1) and not is_off(site, 2)


def test_twice_is_once_and_what_others_set_stays(site, granted, programs):
    fall_asleep(site, "pw001")
    site.api.merge(f"{MACHINES}/m1", {"metadata": {"annotations": {SKIP: "an administrator's"}}})
    site.api.merge(f"{HOSTS}/host1", {"metadata": {"annotations": {"reboot.metal3.io/other": ""}}})
    for verb, want in (("suspend", True), ("suspend", True), ("resume", False), ("resume", False)):
        done = power(site, programs, verb, "pw001")
        assert (done.returncode, done.stderr) == (0, "")
        assert is_off(site, 1) == want
    assert marks(site, f"{MACHINES}/m1")[SKIP] == "an administrator's"
    assert "reboot.metal3.io/other" in marks(site, f"{HOSTS}/host1")


def test_a_dry_run_switches_nothing(site, granted, programs):
    fall_asleep(site, "pw001")
    done = power(site, programs, "suspend", "pw001", "--dry-run")
    assert done.returncode == 0
    assert "pw001: BareMetalHost default/host1 would be switched off" in done.stdout
    assert not is_off(site, 1) and SKIP not in marks(site, f"{MACHINES}/m1")


def test_the_rights_end_at_one_annotation(site, granted, account, tmp_path):
    """And at one condition of a Node."""
    api = Api(account.kubeconfig(tmp_path))
    for body in ({"spec": {"online": False}}, {"metadata": {"annotations": {"reboot.metal3.io": ""}}},
                 {"metadata": {"labels": {"a": "b"}}}):
        with pytest.raises(ApiError) as denied:
            api.merge(f"{HOSTS}/host1", body)
        assert "may change nothing of a BareMetalHost" in str(denied.value)
    set_ready(site, "pw001", "True")

    def patch(kind):
        api.call("PATCH", node_path("pw001") + "/status", {"status": {"conditions": [
            {"type": kind, "status": "False", "reason": "x", "message": ""}]}},
            "application/strategic-merge-patch+json")
    patch("SlurmNodeAsleep")
    with pytest.raises(ApiError) as denied:
        patch("Ready")
    assert "may change nothing of a Node" in str(denied.value)


def test_without_the_rights_it_says_so(plane, site, programs, account):
    plane.kubectl_output("delete", "--ignore-not-found", "-f", str(repository() / "deploy/operator/power.yaml"))
    wait_until(lambda: not can(plane, "patch", "baremetalhosts", account.user, api_group=GROUP), what="no rights")
    fall_asleep(site, "pw001")
    done = power(site, programs, "suspend", "pw001")
    assert done.returncode == 1
    assert "baremetalhosts" in done.stderr and "403" in done.stderr
    assert not is_off(site, 1)
