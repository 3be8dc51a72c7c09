"""A service account with a token, as a client in the cluster has one."""
import json
import pathlib

from .api import ApiError, read_kubeconfig
from .rig import wait_until


def apply(plane, manifest):
    """Creates or changes the objects of a file."""
    return plane.kubectl_output("apply", "-f", str(manifest))


def can(plane, verb, resource, user, group="", api_group=""):
    """The API server's own judgement. `resource` may have a subresource."""
    name, _, subresource = resource.partition("/")
    review = plane.admin.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {
        "user": user, "groups": [group] if group else [],
        "resourceAttributes": {"verb": verb, "group": api_group, "resource": name,
                               "subresource": subresource}}})
    return review["status"]["allowed"]


class ServiceAccount:
    """NAMESPACE/NAME, made where it is missing; no rights yet."""

    def __init__(self, plane, name, namespace="default"):
        self.plane, self.name, self.namespace = plane, name, namespace
        self.path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        ensure(plane.admin, self.path, {"metadata": {"name": name}})

    @property
    def user(self):
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    def grant(self, role, rules):
        """Binds the account to a ClusterRole `role`, made with these rules, and waits until the API
        server judges so: a daemon that asked too early would believe the answer for a while."""
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        ensure(self.plane.admin, f"{rbac}/clusterroles",
               {"metadata": {"name": role}, "rules": rules})
        ensure(self.plane.admin, f"{rbac}/clusterrolebindings", {
            "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                        "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": self.name,
                          "namespace": self.namespace}]})
        wait_until(lambda: all(can(self.plane, rule["verbs"][0], rule["resources"][0], self.user,
                                   api_group=rule["apiGroups"][0]) for rule in rules),
                   what=f"the rights of {role}")

    def token(self):
        answer = self.plane.admin.create(f"{self.path}/{self.name}/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
        return answer["status"]["token"]

    def token_file(self, directory):
        path = pathlib.Path(directory) / f"{self.name}.token"
        path.touch(mode=0o600)
        path.write_text(self.token())
        return path

    def kubeconfig(self, directory):
        """A kubeconfig with a token of this account."""
        admin = read_kubeconfig(self.plane.admin_kubeconfig)
        path = pathlib.Path(directory) / f"{self.name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": admin["clusters"][0]["cluster"]}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": self.token()}}]}))
        return path


def ensure(api, collection, body):
    """Creates an object unless it exists."""
    try:
        api.create(collection, body)
    except ApiError as error:
        if error.status != 409:
            raise
