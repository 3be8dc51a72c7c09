#!/usr/bin/python3
"""./dev demo: a private control plane and a private Slurm on loopback, slurmlet beside a real
slurmd, and what kubectl shows of it. Everything ends with it; nothing is left running."""
import argparse
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lab"))
from harness.api import node_path, wait_condition  # noqa: E402
from harness import autoscaling  # noqa: E402
from harness.cluster_api import CORE, ClusterAPI  # noqa: E402
from harness.control_plane import ControlPlane  # noqa: E402
from harness.daemon import BINARY, Slurmlet  # noqa: E402
from harness.operator_site import INTERVAL, OPERATOR, Machines, Site, operator_account  # noqa: E402
from harness.programs import CLUSTER_API  # noqa: E402
from harness.rig import wait_until  # noqa: E402
from slurmcluster import SlurmCluster  # noqa: E402

UUID = "8b2a2f8a-6d4e-4a1c-9b1d-3c5f0e7a9d21"


def title(text):
    print(f"\n\033[1m==> {text}\033[0m", flush=True)


def run_and_show(plane, *arguments):
    print("$ kubectl " + " ".join(arguments), flush=True)
    print(plane.kubectl_output(*arguments), flush=True)


def instance_data(path, name):
    """What cloud-init leaves on a machine that Metal3 provisioned."""
    meta = {"uuid": UUID, "instance-id": UUID, "metal3-namespace": "metal3",
            "metal3-name": "node-0", "name": name, "local-hostname": name,
            "local_hostname": name, "providerid": f"metal3/node-0/{name}"}
    path.write_text(json.dumps({"ds": {"meta_data": meta, "network_json": {}},
                                "v1": {"cloud_id": "configdrive", "local_hostname": name}}))


def main():
    parser = argparse.ArgumentParser(prog="./dev demo")
    parser.add_argument("--keep", action="store_true", help="wait for Enter before ending")
    options = parser.parse_args()
    work = pathlib.Path(tempfile.mkdtemp(prefix="slurmlet-demo-", dir="/tmp"))
    work.chmod(0o755)
    name = socket.gethostname().split(".")[0].lower()
    began = time.monotonic()
    try:
        demo(work, name, options)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"\nThe demo took {time.monotonic() - began:.0f} s; everything it started has ended.")


def free_port():
    with socket.socket() as listener:
        listener.bind(("", 0))
        return listener.getsockname()[1]


def approve_serving(plane, name):
    """Serving certificates are for an administrator or a policy to approve."""
    requests = plane.admin.get("/apis/certificates.k8s.io/v1/certificatesigningrequests")["items"]
    for request in requests:
        if request["spec"]["signerName"] == "kubernetes.io/kubelet-serving":
            run_and_show(plane, "certificate", "approve", request["metadata"]["name"])


def demo(work, name, options):
    title("control plane: etcd, kube-apiserver, controller-manager, scheduler on 127.0.0.1")
    with ControlPlane(work / "cp") as plane:
        title(f"Slurm: munged, slurmctld and slurmd for node {name}, four a100 in its Gres")
        slurm = SlurmCluster(str(work / "slurm"))
        slurm.up(nodes=[name], gpus="a100:4", cluster_name="alps")
        try:
            show(work, name, plane, slurm, options)
        finally:
            slurm.down()
        scale(work, plane)


def show(work, name, plane, slurm, options):
    metadata = work / "instance-data.json"
    instance_data(metadata, name)
    bootstrap = work / "bootstrap-kubeconfig"
    plane.run("bootstrap-kubeconfig", "--dir", plane.directory, "--out", bootstrap)
    arguments = ["--bootstrap-kubeconfig", bootstrap, "--metadata", metadata,
                 "--state-dir", work / "state", "--config", work / "config.yaml",
                 "--port", str(free_port()), "--healthz-port", "0"]
    (work / "config.yaml").write_text(
        "apiVersion: slurmlet.io/v1alpha1\nkind: SlurmletConfiguration\n"
        "slurm: {pollInterval: 5s}\n")
    title(f"slurmlet, with a bootstrap token; it will be system:node:{name}")
    print(f"$ {BINARY.name} --bootstrap-kubeconfig … --metadata {metadata.name} "
          f"--config {work}/config.yaml")
    began = time.monotonic()
    with Slurmlet(work / "daemon", arguments, {"SLURM_CONF": str(slurm.conf_path)}) as daemon:
        wait_condition(plane.admin, name, "Ready", "True", 30)
        print(f"Ready {time.monotonic() - began:.2f} s after its start")
        wait_condition(plane.admin, name, "SlurmNodeStateIdle", "True", 30)
        run_and_show(plane, "get", "csr")
        approve_serving(plane, name)
        run_and_show(plane, "get", "nodes", "-o", "wide")
        run_and_show(plane, "describe", "node", name)
        run_and_show(plane, "get", "--raw", f"/api/v1/nodes/{name}/proxy/metrics/resource")

        title("scontrol update state=drain reason='bad dimm'")
        subprocess.run(["scontrol", "update", f"nodename={name}", "state=drain",
                        "reason=bad dimm"], check=True, env=slurm.env)
        wait_condition(plane.admin, name, "SlurmNodeStateDrain", "True", 30)
        show_conditions(plane, name)

        title("a pod with spec.nodeName = " + name)
        reject_a_pod(plane, name)

        turn_over(work, plane, slurm, name)

        title("kill -9 slurmd")
        pid = slurm.pid("slurmd")
        began = time.monotonic()
        subprocess.run(["kill", "-9", str(pid)], check=True)
        wait_condition(plane.admin, name, "SlurmdReady", "False", 10)
        print(f"SlurmdReady=False after {time.monotonic() - began:.2f} s")
        wait_condition(plane.admin, name, "Ready", "False", 30)
        print(f"Ready=False after {time.monotonic() - began:.1f} s (grace period 15 s)")
        run_and_show(plane, "get", "nodes")
        run_and_show(plane, "get", "events", "-n", "default")
        title("slurmlet's log")
        print(daemon.output())
        if options.keep:
            print(f"KUBECONFIG={plane.admin_kubeconfig} SLURM_CONF={slurm.conf_path}")
            input("Enter goes on ")
        print(f"slurmlet ended {daemon.stop():.2f} s after SIGTERM")


# What is asked of Cluster API's; the demo plays its controllers.
MACHINE_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "machines.cluster.x-k8s.io", "annotations": {
        "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/cluster-api"}},
    "spec": {"group": "cluster.x-k8s.io", "scope": "Namespaced", "names": {"plural": "machines", "kind": "Machine"},
             "versions": [{"name": "v1beta2", "served": True, "storage": True, "subresources": {"status": {}},
                           "schema": {"openAPIV3Schema": {
                               "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


def turn_over(work, plane, slurm, name):
    """A cordon that drains, a job that finishes, a Machine that goes."""
    def scontrol(*arguments):
        print("$ scontrol " + " ".join(arguments), flush=True)
        return slurm.command("scontrol", *arguments).stdout

    def drained():
        return "DRAIN" in slurm.node_state(name)

    scontrol("update", f"nodename={name}", "state=resume")
    title("slurmlet-operator: kubectl cordon drains, kubectl uncordon undrains")
    kubeconfig = operator_account(plane).kubeconfig(work)
    machines = Machines(plane, MACHINE_CRD)
    with Slurmlet(work / "operator", [f"--kubeconfig={kubeconfig}", f"--slurm-conf={slurm.conf_path}",
                                      f"--interval={INTERVAL}s", "--metrics-address="], program=OPERATOR) as operator:
        began = time.monotonic()
        run_and_show(plane, "cordon", name)
        wait_until(drained, what="the drain")
        print(f"drained {time.monotonic() - began:.2f} s later")
        print("\n".join(line for line in scontrol("show", "node", name).splitlines()
                        if line.strip().startswith(("State=", "Reason="))))
        run_and_show(plane, "uncordon", name)
        wait_until(lambda: not drained(), what="the end of the drain")

        title("a Machine of Cluster API is deleted while a job runs: it goes when the job has ended")
        machines.add("machine-0", name)
        job = slurm.command("sbatch", "--parsable", "--output=/dev/null", "--chdir=/", "--time=5",
                            "--wrap=sleep 8").stdout.strip()
        wait_until(lambda: "JobState=RUNNING" in slurm.command("scontrol", "show", "job", job).stdout,
                   what="the job to run")
        run_and_show(plane, "delete", "machine", "machine-0", "--wait=false")
        machines.wait_released("machine-0", 60)
        print("\n".join(line.strip() for line in scontrol("show", "job", job).splitlines()
                        if "JobState=" in line or "ExitCode=" in line))
        machines.finish("machine-0")
        run_and_show(plane, "get", "events", "-n", "default", "--field-selector=involvedObject.kind=Machine")
        print("slurmlet-operator's log\n" + operator.output())
        machines.end()
        plane.admin.merge(node_path(name), {"metadata": {"annotations": {"slurmlet.io/detach": None}}})
    scontrol("update", f"nodename={name}", "state=undrain")


POOL, HOST = "pool", "metal-1"


def scale(work, plane):
    """A partition without a node gets one for a job, by Cluster API."""
    title("autoscaling: an empty partition, and a MachineDeployment of Cluster API for it")
    if not CLUSTER_API.exists():
        print(f"Left out: Cluster API's manager could not be built ({CLUSTER_API}; build/controlplane.log says why).")
        return
    hosts = autoscaling.Hosts(plane.admin, [HOST])
    cluster_api, slurm = ClusterAPI(plane, work / "capi", None, hosts), SlurmCluster(str(work / "elastic"))
    site = Site(plane, slurm, autoscaling.scaling_account(plane), work)
    try:
        autoscaling.up_without_nodes(slurm.up, slurmd_timeout=10, cluster_name="elastic")
        hosts.begin(slurm)
        autoscaling.make_scaled(cluster_api, POOL, 0, 1)
        site.start(*autoscaling.FLAGS)
        up_and_down(plane, slurm, cluster_api)
    except BaseException:
        site.print_logs()
        raise
    finally:
        site.end()
        cluster_api.delete_deployment(POOL)
        cluster_api.stop()
        slurm.down()


def up_and_down(plane, slurm, cluster_api):
    def slurm_shows(*words):
        print("$ " + " ".join(words), flush=True)
        print(slurm.command(*words).stdout, flush=True)

    def wait(condition, what):
        wait_until(condition, what=what)
        print(f"({what}: {time.monotonic() - began:.0f} s after sbatch)", flush=True)

    pool = plane.admin.get(f"{CORE}/machinedeployments/{POOL}")
    print("".join(f"  {key}: {value}\n" for key, value in sorted(pool["metadata"]["annotations"].items())
                  if "scal" in key or "idle" in key), end="")
    run_and_show(plane, "get", "machinedeployments")
    slurm_shows("sinfo")
    title("a job is submitted: a Machine comes, and the job runs")
    began = time.monotonic()
    job = slurm.command("sbatch", "--parsable", "--output=/dev/null", "--chdir=/", "--wrap=sleep 5").stdout.strip()
    slurm_shows("squeue")
    wait(lambda: slurm.job_state(job) == "RUNNING", "it runs")
    run_and_show(plane, "get", "machines")
    slurm_shows("squeue")
    title("the job has ended: its Machine is drained, and goes")
    wait(lambda: slurm.job_state(job) == "COMPLETED", "it is COMPLETED")
    wait(lambda: "scale-down" in slurm.show_node(HOST), "its node has been idle for 5 s, and is drained")
    slurm_shows("sinfo", "-R")
    wait(lambda: not cluster_api.machines(), "its Machine has gone")
    wait(lambda: not slurm.node_state(HOST), "so has Slurm's record of the node")
    slurm_shows("sinfo")
    run_and_show(plane, "get", "machinedeployments")
    run_and_show(plane, "get", "events", "-n", "default", "--field-selector=reason=Scaling", "-o",
                 "custom-columns=MESSAGE:.message")


def show_conditions(plane, name):
    node = plane.admin.get(node_path(name))
    for entry in node["status"]["conditions"]:
        print(f"  {entry['type']:28} {entry['status']:8} {entry['reason']:26} {entry['message']}")


def reject_a_pod(plane, name):
    plane.admin.create("/api/v1/namespaces/default/pods", {
        "metadata": {"name": "web-0"},
        # Tolerates every taint, or the taint manager would delete it before we can look at it.
        "spec": {"nodeName": name, "tolerations": [{"operator": "Exists"}],
                 "containers": [{"name": "c", "image": "nginx"}]}})
    pod, seconds = plane.admin.wait(
        "/api/v1/namespaces/default/pods", lambda p, _: p["status"].get("phase") == "Failed", 10)
    run_and_show(plane, "get", "pods")
    print(f"Message: {pod['status']['message']}\n({seconds:.2f} s after it was created)")


if __name__ == "__main__":
    main()
