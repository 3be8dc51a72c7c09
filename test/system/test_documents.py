"""The shell blocks of the user pages that say "run: cluster", page by page in their order, in a copy of the repository:
a real control plane of their own, a real Slurm with one node, slurmlet beside it, a Machine by Cluster API's CRD.
systemctl is a script that does nothing: there is no service here (test/machine has one). The pages that need
slurmlet-operator have it. The seconds of each page are printed at the end."""
import os
import shutil
import subprocess
import sys
import time

import pytest
import yaml

from harness.api import node_path, repository
from harness.control_plane import BINARY as CONTROL_PLANE, ControlPlane
from harness.daemon import Slurmlet
from harness.operator_site import (CRDS, HOOK, INTERVAL, MACHINES, OPERATOR, RECORD, Machines, operator_account,
                                   request_certificate)
from harness.rig import Rig, wait_until

sys.path.insert(0, str(repository() / "scripts/docs"))
import blocks  # noqa: E402
import markdown  # noqa: E402

pytestmark = pytest.mark.slow
NODE = "hpc-x7k2p"  # as in docs/
LAST = "docs/how-to/uninstall.md"
NEED_OPERATOR = ("docs/how-to/drain-by-cordon.md", "docs/how-to/remove-machines.md")
PAGES = sorted({markdown.name(block.page) for block in blocks.every() if block.where == "cluster"},
               key=lambda name: (name == LAST, name))
DAEMONSETS = "/apis/apps/v1/namespaces/default/daemonsets"
# Kinds that pages use beside the Machine, and their projects: files of build/crds.
KINDS = {"cluster-api": ["machinedeployments"], "baremetal-operator": ["baremetalhosts"], "keda": ["scaledobjects"],
         "metal3": ["metal3datatemplates", "metal3machinetemplates", "metal3machines"]}
# What a page needs of other projects. Where those were not to be had (test/lab/crds/fetch.sh), it is skipped.
PROJECTS = {"docs/how-to/metal3.md": ["baremetal-operator", "metal3"], "docs/how-to/autoscaling.md": ["keda", "metal3"]}
HOST = {"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": {"name": "node-0"}, "spec": {"online": True}}


@pytest.fixture(scope="module", name="own_plane")
def control_plane_of_the_documents(work):
    with ControlPlane(work / "cp-docs", "--audit") as running:
        yield running


@pytest.fixture(scope="module", name="node")
def node_of_the_documents(own_plane, own_slurm, work):
    cluster = own_slurm(nodes=[NODE], cpus=2, cluster_name="alps", node_hosts={NODE: NODE})
    one = Rig(own_plane, cluster, NODE, work / "docs-node")
    one.start()
    yield one
    one.stop()


def daemon_set(name):
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
            "tolerations": [{"operator": "Exists"}], "containers": [{"name": "one", "image": "none"}]}}}}


def script(path, *lines):
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)


class Desk:
    """Where an administrator sits: a copy of deploy/, kubectl with admin's credential, Slurm's commands."""

    def __init__(self, plane, node, directory):
        self.plane, self.node, self.directory = plane, node, directory
        for name in ("deploy", "packaging"):
            shutil.copytree(repository() / name, directory / name)
        shutil.copyfile(plane.admin_kubeconfig, directory / "admin.conf")
        programs = directory / "bin"
        programs.mkdir()
        script(programs / "kubectl", f'exec {CONTROL_PLANE} kubectl "$@"')
        script(programs / "systemctl", '[ "$1" != show ] || printf "User=root\\nUnitFileState=enabled\\nActiveState=active\\n"')
        config = directory / "operator.yaml"
        config.write_text(f"apiVersion: slurmlet.io/v1alpha1\nkind: OperatorConfiguration\nslurmConf: {node.slurm.conf_path}\n"
                          f"kubeconfig: {directory}/operator.kubeconfig\nmetricsAddress: ''\n"
                          + (f"slurmBinDir: {node.slurm.bin_dir}\n" if node.slurm.bin_dir else ""))
        script(programs / "slurmlet-operator", f'exec {OPERATOR} "$@" --config={config}')
        slurm = f"{node.slurm.bin_dir}:" if node.slurm.bin_dir else ""
        self.environment = {"PATH": f"{programs}:{slurm}/usr/sbin:/usr/bin:/bin", "HOME": str(directory),
                            "KUBECONFIG": str(plane.admin_kubeconfig), "SLURM_CONF": str(node.slurm.conf_path)}

    def has_the_policies(self, daemon_set):
        """The API server takes each up from a watch."""
        def dry_run(*words):
            return subprocess.run(["kubectl", *words, "--dry-run=server"], cwd=self.directory, env=self.environment,
                                  capture_output=True, text=True, check=False)
        changed = dry_run("annotate", "daemonset", daemon_set, "some=change", "-o", "jsonpath={.spec.template.spec.affinity}")
        return dry_run("create", "-f", "pod.yaml").returncode != 0 and changed.stdout != ""

    def run(self, block, known):
        text = block.script(known)
        print(f"--- {block.name}\n{text}")
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=self.directory, env=self.environment,
                              capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL)
        print(done.stdout[-3000:] + done.stderr)
        assert done.returncode == block.exit_code, f"{block.name}: exit code {done.returncode}\n{done.stderr}"
        return done.stdout + done.stderr


def crds(project):
    for directory in sorted((repository() / "build/crds").glob(f"{project}-v*"))[-1:]:
        for kind in KINDS[project]:
            [path] = directory.glob(f"*_{kind}.yaml")
            [crd] = yaml.safe_load_all(path.read_text())
            crd["spec"].pop("conversion", None)
            yield crd


def is_served(plane, *kinds):
    return {line.split()[0] for line in plane.kubectl_output("api-resources", "--no-headers").splitlines()} >= set(kinds)


def other_projects(plane):
    """Their kinds; with those of Metal3 the overlay and a host of a reader."""
    made = [crd for project in KINDS for crd in crds(project)]
    for crd in made:
        plane.admin.create(CRDS, crd)
    wait_until(lambda: is_served(plane, *[crd["spec"]["names"]["plural"] for crd in made]), what="the kinds")
    if any(crds("metal3")):
        plane.kubectl_output("apply", "-k", str(repository() / "deploy/metal3/overlays/example"))
    if any(crds("baremetal-operator")):
        plane.admin.create("/apis/metal3.io/v1alpha1/namespaces/metal3/baremetalhosts", HOST)


@pytest.fixture(scope="module", name="known")
def what_the_pages_take_for_granted(own_plane, node, work):
    """Objects that a reader has, and their names."""
    api = own_plane.admin
    machines = Machines(own_plane)
    for namespace in ("exempt", "metal3"):
        api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    for name in ("exempt", "storage"):
        api.create(DAEMONSETS, daemon_set(name))
    one = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
           "metadata": {"name": NODE, "annotations": {HOOK: ""}, "labels": {"cluster.x-k8s.io/cluster-name": "hpc"}},
           "spec": {"clusterName": "hpc", "bootstrap": {"dataSecretName": "none"}, "infrastructureRef": {
               "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "None", "name": NODE}}}
    wait_until(lambda: api.find("/api/v1/namespaces/metal3/serviceaccounts/default"), what="the namespace")
    other_projects(own_plane)
    path = MACHINES.replace("/default/", "/metal3/")
    api.create(path, one)
    api.merge(f"{path}/{NODE}/status", {"status": {"nodeRef": {"name": NODE}, "addresses": [
        {"type": "InternalIP", "address": "192.0.2.11"}, {"type": "Hostname", "address": "node-0"}]}})
    own_plane.kubectl_output("apply", "-k", str(repository() / "deploy/rbac"))
    request = request_certificate(own_plane, work, "other-node", [], name="abcdef", group="system:bootstrappers:slurmlet")
    yield {"$NODE": node.name, "$EXEMPT": "exempt", "$DAEMONSET": "storage", "$REQUEST": request.rpartition("/")[2]}
    machines.end()


@pytest.fixture(name="operator")
def operator_where_a_page_needs_it(request, own_plane, node, tmp_path):
    if request.node.callspec.params["page"] not in NEED_OPERATOR:
        yield None
        return
    kubeconfig = operator_account(own_plane).kubeconfig(tmp_path)
    with Slurmlet(tmp_path / "operator", [
            f"--kubeconfig={kubeconfig}", f"--slurm-conf={node.slurm.conf_path}", f"--interval={INTERVAL}s",
            *([f"--slurm-bin-dir={node.slurm.bin_dir}"] if node.slurm.bin_dir else []), "--metrics-address="],
            program=OPERATOR) as running:
        yield running
        print("--- slurmlet-operator's log\n" + running.output()[-3000:])
    own_plane.admin.merge(node_path(NODE), {"metadata": {"annotations": {RECORD: None}}})


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page(page, own_plane, node, known, operator, tmp_path, timing):
    missing = [project for project in PROJECTS.get(page, ()) if not any(crds(project))]
    if missing:
        pytest.skip(f"no CRDs of {missing} were to be had: see build/crds")
    desk = Desk(own_plane, node, tmp_path)
    prepare(page, desk)
    began = time.monotonic()
    for block in blocks.of_page(repository() / page):
        if block.where == "cluster":
            desk.run(block, known)
            if "apply -k deploy/admission" in block.text:
                wait_until(lambda: desk.has_the_policies(known["$DAEMONSET"]), what="the policies to be in force")
    timing(f"{page}: its blocks run", time.monotonic() - began)
    after(page, desk)



def prepare(page, desk):
    """What the text before the blocks has the reader do."""
    if page == "docs/how-to/keep-pods-off.md":
        (desk.directory / "pod.yaml").write_text(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: direct}\nspec:\n  nodeName: nid000001\n"
            "  containers: [{name: one, image: none}]\n")


def after(page, desk):
    """What a page leaves to the next."""
    if page in ("docs/how-to/remove-machines.md", "docs/how-to/drain-by-cordon.md"):
        desk.node.slurm.reset(NODE)
    if page == "docs/how-to/keep-pods-off.md":
        subprocess.run(["kubectl", "delete", "-k", "deploy/admission"], cwd=desk.directory, env={**os.environ, **desk.environment},
                       check=True, capture_output=True)
