"""What the API server was asked, by its audit log (`controlplane up --audit`)."""
import collections
import datetime
import json

_CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"


class Audit:
    """The requests of one user. Each request has one line, written before its answer; a watch has
    two (its start and its end)."""

    def __init__(self, path, user):
        self.path = path
        self.user = user

    def mark(self):
        """A position in the log, for requests(since)."""
        return self.path.stat().st_size

    def requests(self, since=0):
        """[(seconds since the epoch, verb, "nodes/status", name)] from a mark on."""
        return [_request(entry) for entry in self.entries(since)]

    def object_writes(self, moment):
        """What the user wrote to Nodes and Leases from a moment on (seconds since the epoch):
        [(verb, resource)]. By the requests' own time, since a watch may tell of a write before the
        write's line is in the log; and unlike a resourceVersion without the controllers, which
        write to a new Node too."""
        return [(verb, resource) for received, verb, resource, _ in self.requests()
                if received >= moment and resource.split("/")[0] in ("nodes", "leases")
                and verb in ("create", "update", "patch", "delete")]

    def renewals(self, since=0):
        """When the Lease was written, seconds since the epoch."""
        return [moment for moment, verb, resource, _ in self.requests(since)
                if resource == "leases" and verb in ("create", "update", "patch")]

    def credentials(self, since=0):
        """{credential id: number of requests}. The id is "X509SHA256=…" of a client certificate or
        "JTI=…" of a token."""
        return collections.Counter(one for _, one in self.credential_moments(since))

    def credential_moments(self, since=0):
        """[(seconds since the epoch, credential id)], for each request."""
        return [(seconds_of(entry), one)
                for entry in self.entries(since)
                for one in entry["user"].get("extra", {}).get(_CREDENTIAL_ID, [])]

    def entries(self, since=0):
        """The log's own objects."""
        found = []
        with open(self.path, "rb") as log:
            log.seek(since)
            for line in log:
                if not line.endswith(b"\n") or self.user.encode() not in line:
                    continue
                entry = json.loads(line)
                if entry["user"]["username"] == self.user:
                    found.append(entry)
        return found


def seconds_of(entry):
    """When the API server had received it, since the epoch."""
    return _seconds(entry["requestReceivedTimestamp"])


def _request(entry):
    about = entry.get("objectRef", {})
    resource = about.get("resource", entry["requestURI"])
    if "subresource" in about:
        resource += "/" + about["subresource"]
    return (seconds_of(entry), entry["verb"], resource,
            about.get("name", ""))


def _seconds(timestamp):
    moment = datetime.datetime.strptime(timestamp, "%Y-%m-%dT%H:%M:%S.%fZ")
    return moment.replace(tzinfo=datetime.timezone.utc).timestamp()
