"""What packaging/container/Containerfile makes of Debian, without the tools that make an image of it: its root
directory, and in it slurmlet-operator as the pod of deploy/charts/slurmlet runs it: that pod's settings, its
user, a root that cannot be written, a service account, and Slurm by a token or by munge."""
import os
import pathlib
import re
import subprocess

import pytest
import yaml

from harness.api import repository
from harness.daemon import Slurmlet
from harness.programs import free_port
from harness.rig import wait_until
from test_operator import NODES, OPERATOR, Site

CONTAINER = repository() / "packaging/container"
CHART = repository() / "deploy/charts/slurmlet"
HELM = repository() / "build/tools/helm"
UID = 64030
ACCOUNT = "run/secrets/kubernetes.io/serviceaccount"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts")


@pytest.fixture(scope="module", name="cluster")
def slurm_with_tokens(own_slurm):
    return own_slurm(nodes=NODES, cpus=2, cluster_name="opera", jwt=True, node_hosts={name: name for name in NODES})


@pytest.fixture(scope="module", name="image")
def root_directory(tmp_path_factory):
    """SLURMLET_IMAGE_ROOT: that of an image that was really made, unpacked."""
    if "SLURMLET_IMAGE_ROOT" in os.environ:
        return pathlib.Path(os.environ["SLURMLET_IMAGE_ROOT"])
    root = tmp_path_factory.mktemp("image") / "root"
    root.mkdir(mode=0o755)
    subprocess.run([CONTAINER / "rootfs.sh", root, OPERATOR], check=True, timeout=120)
    return root


def rendered(auth, management):
    """(settings, pod) as the chart has them; `management`: the Machines are in another cluster."""
    values = {"operator.deployment": "true", "operator.image": "x", "operator.slurm.configMap": "x",
              "operator.slurm.jwtSecret": "x", "operator.slurm.auth": auth, "operator.settings.interval": "1s",
              "operator.metricsPort": free_port()}
    if management:
        values |= {"operator.management.kubeconfigSecret": "x", "operator.settings.machineCluster": "default/c1"}
    text = subprocess.run(
        [HELM, "template", CHART, "--namespace", "kube-system",
         *(word for pair in values.items() for word in ("--set", "=".join(map(str, pair))))],
        check=True, capture_output=True, text=True, env={"HOME": "/nonexistent"}).stdout
    made = {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(text) if one}
    return made["ConfigMap", "slurmlet-operator"]["data"]["operator.yaml"], \
        made["Deployment", "slurmlet-operator"]["spec"]["template"]["spec"]


class Projected:
    """A projected volume as the kubelet makes one: its files are links, and change all at once by one."""

    def __init__(self, path):
        self.path, self.number = path, 0
        path.mkdir()
        os.chown(path, 0, UID)
        path.chmod(0o3777)

    def write(self, name, text):
        self.number += 1
        made = self.path / f"..{self.number}"
        made.mkdir()
        os.chown(made, 0, UID)
        made.chmod(0o2755)
        (made / name).write_text(text)
        os.chown(made / name, 0, UID)
        (made / name).chmod(0o644)
        new = self.path / "..data_tmp"
        new.symlink_to(made.name)
        new.rename(self.path / "..data")
        if not (self.path / name).is_symlink():
            (self.path / name).symlink_to(f"..data/{name}")


class Pod:
    """Runs the program as a container runtime would."""

    def __init__(self, site, plane, image, directory, auth, management):
        self.site, self.image, self.directory = site, image, directory
        self.settings, self.spec = rendered(auth, management)
        self.mounts = directory / "mounts"
        self._file(ACCOUNT + "/token", site.account.token())
        self._file(ACCOUNT + "/ca.crt", (plane.directory / "pki/ca.crt").read_text())
        self._file(ACCOUNT + "/namespace", "kube-system")
        self._file("etc/slurmlet/operator.yaml", self.settings)
        self.conf = re.sub(r"(?m)^Include .*\n", "", open(site.slurm.conf_path, encoding="utf-8").read())
        self.volume = Projected(directory / "slurm-conf")
        self.volume.write("slurm.conf", self.conf)
        if management:
            self._file("run/secrets/management/kubeconfig", site.account.kubeconfig(directory).read_text())
        self.binds = {self.volume.path: "/etc/slurm"}
        if auth == "jwt":
            self._file("run/secrets/slurm/token", site.slurm.token("root"))
        else:
            socket = re.search(r"(?m)^AuthInfo=.*socket=([^,\s]+)", self.conf)[1]
            self.binds[os.path.dirname(socket)] = os.path.dirname(socket)
        self.environment = {"KUBERNETES_SERVICE_HOST": plane.admin.host,
                            "KUBERNETES_SERVICE_PORT": str(plane.admin.port)}

    def _file(self, name, text):
        path = self.mounts / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if "secrets" in name:
            os.chown(path, 0, UID)
            path.chmod(0o440)

    def start(self, *arguments):
        [container] = self.spec["containers"]
        user = f"{self.spec['securityContext']['runAsUser']}:{self.spec['securityContext']['runAsGroup']}"
        root = self.directory / "root"
        upper, work = self.directory / "upper", self.directory / "work"
        lines = ["set -e", f"mkdir -p {root} {upper} {work}",
                 f"mount -t overlay overlay -o lowerdir={self.mounts}:{self.image},upperdir={upper},workdir={work} {root}",
                 f"mkdir -p {root}/dev {root}/proc", f"mount -t proc proc {root}/proc"]
        for device in ("null", "urandom"):
            lines += [f"touch {root}/dev/{device}", f"mount --bind /dev/{device} {root}/dev/{device}"]
        for outside, inside in self.binds.items():
            lines += [f"mkdir -p {root}{inside}", f"mount --bind {outside} {root}{inside}"]
        lines += [f"mount -o remount,ro {root}",
                  f'exec chroot --userspec={user} {root} /usr/sbin/slurmlet-operator "$@"']
        script = self.directory / "run.sh"
        script.write_text("\n".join(lines) + "\n")
        one = Slurmlet(self.directory / "log", ["--no-new-privs", "unshare", "--mount", "sh", script,
                                                *(arguments or container["args"])],
                       {**self.environment, "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}, program="setpriv")
        self.site.operators.append(one)
        return one


@pytest.fixture(name="pod_of")
def pods(request, plane, cluster, account, image, tmp_path):
    site = Site(plane, cluster, account, tmp_path)
    for name in NODES:
        cluster.reset(name)
        site.add(name)
    yield lambda auth, management=False: Pod(site, plane, image, tmp_path, auth, management)
    site.print_logs()
    site.end()
    for name in NODES:
        cluster.reset(name)


def test_nothing_else_is_in_it(image):
    files = {str(path.relative_to(image)) for path in image.rglob("*") if not path.is_dir()}
    programs = {name for name in files if "bin/" in name}
    assert programs == {"usr/sbin/slurmlet-operator",
                        *(f"usr/bin/{name}" for name in ("scontrol", "squeue", "scancel", "sacctmgr"))}
    assert not [name for name in files if os.stat(image / name, follow_symlinks=False).st_mode & 0o6000]
    size = sum(os.lstat(image / name).st_size for name in files) >> 20
    print(f"{len(files)} files, {size} MB")
    assert size < 60


def test_with_a_token_it_does_all_its_work(pod_of):
    pod = pod_of("jwt")
    site, one = pod.site, pod.start()
    site.wait_record("op001", lambda r: r["text"].startswith("NodeName=op001 "))
    site.cordon("op001")
    site.wait_drained("op001")
    site.cordon("op001", False)
    site.wait_undrained("op001")
    wait_until(lambda: "SlurmNodeUndrained" in site.events("op001"), what="the Event")
    status = open(f"/proc/{one.pid}/status", encoding="ascii").read()
    assert re.search(rf"Uid:\t{UID}\t{UID}\t{UID}\t{UID}", status)
    assert re.search(r"CapEff:\t0+\n", status)
    assert set(os.listdir(pod.directory / "upper")) <= {"proc", "dev"}  # mount points
    assert one.stop() < 5


def test_a_machine_goes_and_its_jobs_are_requeued_or_cancelled(pod_of, machines):
    """With each of Slurm's programs: scontrol drains and requeues, squeue names jobs, scancel ends one."""
    pod = pod_of("jwt", management=True)
    site, one = pod.site, pod.start()
    machines.add("m1", "op001", "now")
    requeued = site.slurm.submit("op001", "--ntasks=1", "--requeue")
    cancelled = site.slurm.submit("op001", "--ntasks=1", "--no-requeue")
    try:
        machines.delete("m1")
        machines.wait_released("m1")
        for job, state in ((requeued, "PENDING"), (cancelled, "CANCELLED")):
            assert f"JobState={state}" in site.slurm.command("scontrol", "show", "job", job).stdout
        assert "DRAIN" in site.state("op001")
        assert one.stop() < 5
    finally:
        site.slurm.command("scancel", requeued, cancelled)
        machines.finish_all()


def test_a_changed_config_map_reaches_slurms_commands(pod_of):
    pod = pod_of("jwt")
    site, one = pod.site, pod.start()
    site.wait_record("op001", lambda r: r["text"].startswith("NodeName=op001 "))
    pod.volume.write("slurm.conf", re.sub(r"(?m)^SlurmctldPort=.*", f"SlurmctldPort={free_port()}", pod.conf))
    wait_until(lambda: "slurmctld did not report the nodes: ControllerUnreachable" in one.output(), what="the new port")
    pod.volume.write("slurm.conf", pod.conf)
    site.cordon("op001")
    wait_until(lambda: "DRAIN" in site.state("op001"), what="the old port")


def test_a_plain_config_map_would_not_count(pod_of):
    """Its directory has no sticky bit: why the chart's is projected."""
    pod = pod_of("jwt")
    pod.volume.path.chmod(0o2777)
    one = pod.start("check", "--config=/etc/slurmlet/operator.yaml")
    assert one.process.wait(60) == 1, one.output()
    assert re.search(r"slurm.conf +/etc/slurm/slurm.conf is not used, .*mode 2777; chmod o-w /etc/slurm", one.output())


def test_check_in_the_container(pod_of):
    one = pod_of("munge", management=True).start("check", "--config=/etc/slurmlet/operator.yaml")
    assert one.process.wait(60) == 0, one.output()
    for subject in ("API server", "management"):
        assert re.search(rf"{subject} .* as system:serviceaccount:kube-system:slurmlet-operator\n", one.output())
    assert re.search(r"slurmctld +2 nodes in", one.output())
    assert re.search(r"jobs +none in", one.output())


def test_with_munge_it_writes_records(pod_of):
    """Whom munge vouches for is no SlurmUser here, so nothing is drained, and the log has slurmctld's words."""
    pod = pod_of("munge")
    site, one = pod.site, pod.start()
    site.wait_record("op001", lambda r: r["text"].startswith("NodeName=op001 "))
    site.cordon("op001")
    wait_until(lambda: "Slurm node op001 is not changed yet: " in one.output(), what="the words")
    assert "DRAIN" not in site.state("op001")
