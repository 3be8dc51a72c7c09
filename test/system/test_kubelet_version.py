"""status.nodeInfo.kubeletVersion, for the two who read it: kubeadm upgrade and Cluster API."""
import pytest

from harness.api import node_path
from harness.control_plane import ControlPlane
from harness.rig import Rig


@pytest.fixture(name="own_plane", scope="module")
def plane_with_no_other_node(work):
    with ControlPlane(work / "cp-version") as running:
        yield running


def wait_version(rig, version):
    rig.wait(lambda node: node["status"]["nodeInfo"]["kubeletVersion"] == version)


def test_kubeadm_upgrade_needs_one_and_a_machine_none(bootstrap_rig, own_plane):
    rig = bootstrap_rig(Rig, own_plane)
    check = ["kubeadm-versions", "--dir", own_plane.directory]
    version = own_plane.admin.get("/version")["gitVersion"]
    rig.start()
    wait_version(rig, version)
    own_plane.run(*check)
    rig.stop()
    rig.configure(node={"kubeletVersion": "none"})
    rig.start()
    wait_version(rig, "")
    with pytest.raises(RuntimeError, match="kubelet"):
        own_plane.run(*check)
    rig.stop()
    rig.configure(node={"kubeletVersion": "auto"})
    rig.start()
    wait_version(rig, version)
    own_plane.admin.merge(node_path(rig.name), {"spec": {"providerID": "metal3://metal3/node-0/m1"}})
    wait_version(rig, "")


def test_what_an_earlier_kubelet_declared_is_cleared(bootstrap_rig, own_plane):
    """Where the API server knows it (alpha in 1.35)."""
    rig = bootstrap_rig(Rig, own_plane)
    rig.start()
    rig.stop()
    own_plane.admin.merge(node_path(rig.name) + "/status", {"status": {"declaredFeatures": ["GuaranteedQoSPodCPUResize"]}})
    rig.start()
    rig.wait(lambda node: not node["status"].get("declaredFeatures"))
