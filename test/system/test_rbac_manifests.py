"""The manifests of deploy/rbac at the real API server: accepted, and they give what they say."""
from harness.api import repository
from harness.bootstrap import GROUP
from harness.rig import wait_until
from harness.service_account import apply, can

RBAC = repository() / "deploy/rbac"
BOOTSTRAP = ("node-bootstrapper.yaml", "approve-client-renewals.yaml", "approve-client-csrs.yaml")


def test_metrics_reader_may_read_metrics_and_nothing_else(plane):
    apply(plane, RBAC / "metrics-reader.yaml")
    user = "system:serviceaccount:kube-system:slurmlet-metrics-reader"
    for verb, resource in (("get", "nodes/metrics"), ("get", "nodes/stats"), ("list", "nodes"),
                           ("watch", "nodes")):
        wait_until(lambda v=verb, r=resource: can(plane, v, r, user), what=f"{verb} {resource}")
    for verb, resource in (("get", "nodes/proxy"), ("create", "nodes/stats"), ("get", "nodes/log"),
                           ("get", "secrets"), ("list", "pods"), ("update", "nodes")):
        assert not can(plane, verb, resource, user), f"{verb} {resource}"


def test_bootstrap_bindings_in_a_cluster_that_has_none(plane):
    """The bindings that kubeadm would make are taken away for the length of this test."""
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    names = ["kubeadm:kubelet-bootstrap", "kubeadm:node-autoapprove-bootstrap",
             "kubeadm:node-autoapprove-certificate-rotation"]
    kept = [plane.admin.get(f"{bindings}/{name}") for name in names]
    # What the controller that approves asks about; rights of system:nodes come from nowhere else.
    wanted = [("certificatesigningrequests", GROUP),
              ("certificatesigningrequests/nodeclient", GROUP),
              ("certificatesigningrequests/selfnodeclient", "system:nodes")]

    def rights():
        return [can(plane, "create", resource, "somebody", group, "certificates.k8s.io")
                for resource, group in wanted]
    try:
        for name in names:
            plane.admin.delete(f"{bindings}/{name}")
        wait_until(lambda: rights() == [False, False, False], what="the end of the rights")
        for name in BOOTSTRAP:
            apply(plane, RBAC / name)
        wait_until(lambda: rights() == [True, True, True], what="the rights of our manifests")
    finally:
        for name in BOOTSTRAP:
            plane.kubectl_output("delete", "--ignore-not-found", "-f", str(RBAC / name))
        for binding in kept:
            for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
                binding["metadata"].pop(field, None)
            plane.admin.create(bindings, binding)
