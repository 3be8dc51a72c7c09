"""A small client of the Kubernetes API for tests: JSON in and out, and waiting on a watch."""
import base64
import http.client
import json
import pathlib
import select
import ssl
import tempfile
import threading
import time
import urllib.parse

import yaml


class ApiError(Exception):
    def __init__(self, status, body):
        self.status = status
        self.body = body
        message = body.get("message", body) if isinstance(body, dict) else body
        super().__init__(f"HTTP {status}: {message}")


def read_kubeconfig(path):
    """A kubeconfig with one cluster and one user, as if the files that it names were written in it."""
    config = yaml.safe_load(pathlib.Path(path).read_text())
    for part in config["clusters"][0]["cluster"], config["users"][0]["user"]:
        for name in "certificate-authority", "client-certificate", "client-key":
            if name in part:
                content = pathlib.Path(path).parent.joinpath(part.pop(name)).read_bytes()
                part[name + "-data"] = base64.b64encode(content).decode()
    return config


class Api:
    """Talks as the user of a kubeconfig (client certificate or token)."""

    def __init__(self, kubeconfig):
        config = read_kubeconfig(kubeconfig)
        cluster = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"]
        url = urllib.parse.urlparse(cluster["server"])
        self.host, self.port = url.hostname, url.port
        self.token = user.get("token")
        self.context = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        if "client-certificate-data" in user:
            with tempfile.NamedTemporaryFile() as pem:
                pem.write(base64.b64decode(user["client-certificate-data"]) + b"\n")
                pem.write(base64.b64decode(user["client-key-data"]))
                pem.flush()
                self.context.load_cert_chain(pem.name)
        self._kept = threading.local()  # a connection of each thread: a handshake costs more than a call

    def _connect(self, timeout):
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=self.context)

    def _connection(self):
        """This thread's; another one if the server has closed it."""
        kept = getattr(self._kept, "connection", None)
        if kept is None:
            kept = self._kept.connection = self._connect(timeout=30)
        elif kept.sock:
            poll = select.poll()
            poll.register(kept.sock, select.POLLIN)
            if poll.poll(0):
                kept.close()  # the next request connects again
        return kept

    def _ask(self, connection, method, path, body=None, content_type="application/json"):
        headers = {"Accept": "application/json"}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        if body is not None:
            headers["Content-Type"] = content_type
            body = json.dumps(body)
        connection.request(method, path, body=body, headers=headers)
        return connection.getresponse()

    def call(self, method, path, body=None, content_type="application/json"):
        connection = self._connection()
        try:
            response = self._ask(connection, method, path, body, content_type)
            text = response.read()
        except BaseException:
            connection.close()
            raise
        try:
            answer = json.loads(text)
        except ValueError:
            answer = text.decode(errors="replace")
        if response.status >= 400:
            raise ApiError(response.status, answer)
        return answer

    def get(self, path):
        return self.call("GET", path)

    def find(self, path):
        """The object, or None if it does not exist."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def create(self, path, body):
        return self.call("POST", path, body)

    def delete(self, path, body=None):
        return self.call("DELETE", path, body)

    def merge(self, path, body):
        return self.call("PATCH", path, body, "application/merge-patch+json")

    def wait(self, collection, predicate, timeout, field_selector=""):
        """Watches a collection until predicate(object, event type) holds for one; returns (object,
        seconds waited). Objects that exist already are seen as ADDED. Raises TimeoutError with the
        last object seen."""
        began = time.monotonic()
        last = None
        while True:
            left = timeout - (time.monotonic() - began)
            if left <= 0:
                raise TimeoutError(f"{collection}: not seen within {timeout} s; last: "
                                   f"{json.dumps(told(last))[:6000]}")
            query = {"watch": "1", "timeoutSeconds": str(int(left) + 1)}
            if field_selector:
                query["fieldSelector"] = field_selector
            try:
                for event in self._events(collection, query, left):
                    if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                        last = event["object"]
                        if predicate(last, event["type"]):
                            return last, time.monotonic() - began
            except (OSError, http.client.HTTPException, ApiError):
                time.sleep(0.05)  # the server is being restarted: try again until the deadline

    def follow(self, collection, name):
        """Events of a watch of ten minutes for one object, which begins with what is there."""
        return self._events(collection, {"watch": "1", "timeoutSeconds": "600",
                                         "fieldSelector": "metadata.name=" + name}, 600)

    def _events(self, collection, query, timeout):
        connection = self._connect(max(timeout, 0.1))
        try:
            response = self._ask(connection, "GET", collection + "?" + urllib.parse.urlencode(query))
            if response.status >= 400:
                raise ApiError(response.status, response.read().decode(errors="replace"))
            while True:
                line = response.readline()
                if not line:
                    return
                yield json.loads(line)
        finally:
            connection.close()


def told(item):
    """An object for people: without the bookkeeping of its fields, and a Node's conditions first."""
    if not item:
        return item
    metadata = {key: value for key, value in item["metadata"].items() if key != "managedFields"}
    conditions = [f"{entry['type']} {entry['status']} {entry['reason']}: {entry['message']}"
                  for entry in item.get("status", {}).get("conditions", [])]
    return {"conditions": conditions, **item, "metadata": metadata} if conditions else {
        **item, "metadata": metadata}


def node_path(name):
    return "/api/v1/nodes/" + name


QUANTITY_UNITS = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1, "k": 10**3, "M": 10**6, "G": 10**9,
                  "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def quantity(text):
    """A number as the API server writes it: with the largest unit that leaves no fraction."""
    digits = text.rstrip("".join(QUANTITY_UNITS))
    return int(digits) * QUANTITY_UNITS[text.removeprefix(digits)]


def condition(node, type_name):
    """The condition of that type, or {} so that .get() works on it."""
    for entry in node.get("status", {}).get("conditions", []):
        if entry["type"] == type_name:
            return entry
    return {}


# Of Slurm's states, those that have a condition whether they hold or not.
SLURM_CORE = ("Idle", "Mixed", "Allocated", "Completing", "Drain", "Down", "Fail", "Maintenance", "NotResponding",
              "InvalidReg")


def slurm_annotation(node, name):
    return node["metadata"]["annotations"].get("slurmlet.io/slurm-" + name)


def slurm_states(node):
    """The Slurm states whose condition is True, without the prefix."""
    prefix = "SlurmNodeState"
    return {entry["type"][len(prefix):] for entry in node["status"]["conditions"]
            if entry["type"].startswith(prefix) and entry["status"] == "True"}


def wait_node(api, name, predicate, timeout):
    """Waits until predicate(node) holds; a deleted Node is seen as None."""
    def check(node, event):
        return predicate(None if event == "DELETED" else node)
    return api.wait("/api/v1/nodes", check, timeout, f"metadata.name={name}")


def wait_condition(api, name, type_name, status, timeout, reason=None):
    def check(node):
        found = condition(node or {}, type_name)
        return found.get("status") == status and (reason is None or found.get("reason") == reason)
    return wait_node(api, name, check, timeout)


def repository():
    return pathlib.Path(__file__).resolve().parent.parent.parent.parent
