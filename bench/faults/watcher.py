"""Every Node's conditions and every user's requests, all along."""
import calendar
import collections
import contextlib
import http.client
import json
import threading
import time

from harness.api import ApiError

Change = collections.namedtuple("Change", "at node type status reason message")


class NodeWatcher:
    """Watches all Nodes; remembers each change of a condition, as a context."""

    def __init__(self, admin):
        self._admin = admin
        self._lock = threading.Lock()
        self._changes, self._latest, self._uids = [], {}, collections.defaultdict(list)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join(20)

    def changes(self, node=None, since=0.0):
        with self._lock:
            return [one for one in self._changes
                    if one.at >= since and node in (None, one.node)]

    def from_index(self, index):
        """(changes from that number on, the number for the next time)."""
        with self._lock:
            return self._changes[index:], len(self._changes)

    def latest(self, node):
        """{type: Change} as last seen; {} for a Node that is not there."""
        with self._lock:
            return dict(self._latest.get(node, {}))

    def uids(self, node):
        """Of all Nodes of that name so far."""
        with self._lock:
            return list(self._uids[node])

    def _run(self):
        while not self._over.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException, ApiError, ValueError):
                # pylint: disable=protected-access
                for event in self._admin._events("/api/v1/nodes", {"watch": "1",
                                                                   "timeoutSeconds": "15"}, 25):
                    if event["type"] in ("ADDED", "MODIFIED", "DELETED"):
                        self._take(event["object"], event["type"] == "DELETED")
                    if self._over.is_set():
                        return
            self._over.wait(0.2)  # the server is away

    def _take(self, node, deleted):
        name, now = node["metadata"]["name"], time.time()
        with self._lock:
            if node["metadata"]["uid"] not in self._uids[name]:
                self._uids[name].append(node["metadata"]["uid"])
                self._latest.pop(name, None)
            if deleted:
                self._latest.pop(name, None)
                return
            known = self._latest.setdefault(name, {})
            for entry in node.get("status", {}).get("conditions", []):
                before = known.get(entry["type"])
                if before and (before.status, before.reason) == (entry["status"],
                                                                 entry.get("reason")):
                    continue
                known[entry["type"]] = Change(now, name, entry["type"], entry["status"],
                                              entry.get("reason"), entry.get("message", ""))
                self._changes.append(known[entry["type"]])


class AuditTail:
    """Reads the audit log once for all users, as it grows: renewals and numbers of requests by
    node, all requests by second."""

    def __init__(self, path):
        self._file = open(path, "rb")  # pylint: disable=consider-using-with
        self._file.seek(0, 2)
        self._rest = b""
        self.renewals = collections.defaultdict(list)
        self.requests = collections.Counter()
        self.by_second = collections.Counter()
        self.codes = collections.Counter()

    def read(self):
        """What has come since."""
        lines = (self._rest + self._file.read()).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            if b'"system:node:' in line:
                self._take(json.loads(line))

    def _take(self, entry):
        user = entry["user"]["username"]
        if not user.startswith("system:node:"):
            return
        name = user.rsplit(":", 1)[1]
        at = seconds(entry["requestReceivedTimestamp"])
        if entry.get("stage") == "ResponseStarted":
            return  # a watch; it has another line at its end
        self.requests[name] += 1
        self.by_second[int(at)] += 1
        code = entry.get("responseStatus", {}).get("code", 0)
        self.codes[code] += 1
        about = entry.get("objectRef", {})
        if about.get("resource") == "leases" and code < 300 and \
                entry["verb"] in ("create", "update", "patch"):
            self.renewals[name].append(at)

    def close(self):
        self._file.close()


def seconds(timestamp):
    """Since the epoch, of an audit log's time."""
    whole, _, fraction = timestamp.rstrip("Z").partition(".")
    return float(_epoch(whole)) + float("0." + (fraction or "0"))


_EPOCHS = {}


def _epoch(whole):
    if whole not in _EPOCHS:
        _EPOCHS.clear()
        _EPOCHS[whole] = calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S"))
    return _EPOCHS[whole]


# -- what a change may be ----------------------------------------------------------------------------

GOOD = {"Ready": "True", "SlurmdReady": "True", "MemoryPressure": "False",
        "DiskPressure": "False", "PIDPressure": "False", "NetworkUnavailable": "False"}
NEVER_TRUE = ("Down", "Fail", "Maintenance", "NotResponding", "InvalidReg", "Mixed", "Allocated")
SILENT_NODE = "NodeStatusUnknown"  # the controller's, after 50 s without a lease
OPEN = ("JobStarted", "NotQueriedYet")  # no claim at all


def is_false(change, may, hindered):
    """Whether the condition claims what is not so. `may` names the conditions that the fault makes
    wrong: types, or "Slurm" for all of Slurm's."""
    if change.type in may or (change.reason == SILENT_NODE and hindered):
        return False
    if change.type in GOOD:
        return change.status != GOOD[change.type]
    if change.type.startswith("SlurmNodeState"):
        state = change.type.removeprefix("SlurmNodeState")
        if change.status == "Unknown":
            return "Slurm" not in may and change.reason not in OPEN
        return change.status == "True" and state in NEVER_TRUE and "SlurmStates" not in may
    return False
