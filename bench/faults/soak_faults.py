"""The faults of a soak: each says whom it hurts, what it makes wrong, and how it is made and ended."""
import contextlib
import dataclasses
import os
import time

from harness.api import ApiError, node_path

DELETIONS = ("Node deleted", "Lease deleted")
API_SERVER = ("API server killed", "API server hung", "API server restarted")
SLURM = ("Slurm", "SlurmStates")
UNKNOWN = ("SlurmNodeStateIdle", "Unknown", 75)  # staleAfter 40 s and a query that hangs
SLURMD = ("Ready", "SlurmdReady", *SLURM)


@dataclasses.dataclass
class Kind:
    """`of`: "fleet" hurts every node, "nodes" some. `hinders`: no lease can be renewed meanwhile.
    `lasts`: between how many seconds; 0 for a fault of a moment. `after`: seconds after its end in
    which its traces may be seen."""
    name: str
    of: str
    lasts: tuple
    begin: object
    end: object = lambda fleet, nodes: None
    may: tuple = ()
    hinders: bool = False
    weight: int = 2
    after: int = 150  # slurmctld pings slurmd every 100 s
    restarts: bool = False
    unnoticed: int = 0  # seconds after its end in which the daemon cannot know of it
    shows: tuple = ()  # (condition, status, seconds until it must be on the Node)

    def excludes(self, other):
        """slurmd does not start without munge and slurmctld, nothing is deleted without an API
        server, and one fault of all is enough."""
        return {self.may, other.may} == {SLURM, SLURMD} or self.of == other.of == "fleet" or \
            any(one.name in DELETIONS and two.name in API_SERVER
                for one, two in ((self, other), (other, self)))


def on_link(action):
    def apply(_, nodes):
        for node in nodes:
            action(node.link)
    return apply


def mend(_, nodes):
    for node in nodes:
        node.link.open()


def act(cluster, action, name):
    """What runs already need not be started."""
    if action != "start" or cluster.pid(name) is None:
        cluster.daemon(action, name)


def slurmds(action):
    def apply(fleet, nodes):
        for node in nodes:
            act(fleet.slurm, action, f"slurmd:{node.slurm_node}")
    return apply


def slurm(action, name):
    return lambda fleet, _: act(fleet.slurm, action, name)


def api_server(*actions):
    def apply(fleet, _):
        for action in actions:
            fleet.lab.plane.ctl(action, "kube-apiserver")
    return apply


def kill_api_server(fleet, _):
    plane = fleet.lab.plane
    plane.run("ctl", "--dir", plane.directory, "--grace", "0", "stop", "kube-apiserver")


def delete(path_of):
    def apply(fleet, nodes):
        for node in nodes:
            with contextlib.suppress(ApiError):
                fleet.lab.plane.admin.delete(path_of(node))
    return apply


def kill_daemons(_, nodes):
    for node in nodes:
        node.daemon.kill()


def start_daemons(_, nodes):
    for node in nodes:
        node.start(ready=False)


def replace_credentials(fleet, nodes):
    for node in nodes:
        node.renew(fleet.lab)


def has_started(node):
    """A start needs the kubeconfig."""
    return time.time() - os.stat(f"/proc/{node.daemon.pid}").st_mtime > 5


def expire(_, nodes):
    """The kubeconfig is half a one, which is rejected; the old one stays in use."""
    nodes[:] = [node for node in nodes if has_started(node)]
    for node in nodes:
        node.kept = node.kubeconfig.read_text()
        node.put("{ half of a kubeconf")


def put_back(_, nodes):
    for node in nodes:
        node.put(node.kept)


KINDS = [
    Kind("API server killed", "fleet", (5, 60), kill_api_server, api_server("start"),
         hinders=True, weight=1),
    Kind("API server hung", "fleet", (5, 60), api_server("pause"), api_server("resume"),
         hinders=True, weight=1),
    Kind("API server restarted", "fleet", (0, 0), api_server("restart"), hinders=True, weight=1),
    Kind("unreachable", "nodes", (5, 90), on_link(lambda link: link.refuse()), mend, hinders=True),
    Kind("silent", "nodes", (5, 90), on_link(lambda link: link.fall_silent()), mend, hinders=True),
    Kind("slow", "nodes", (20, 90), on_link(lambda link: link.slow_down(1.0)), mend),
    Kind("connections forgotten", "nodes", (0, 0), on_link(lambda link: link.lose()), hinders=True,
         unnoticed=10),  # the time limit of a call
    Kind("Node deleted", "nodes", (0, 0), delete(lambda node: node_path(node.name))),
    Kind("Lease deleted", "nodes", (0, 0), delete(lambda node: node.lease_path)),
    Kind("slurmd killed", "nodes", (2, 60), slurmds("kill"), slurmds("start"), may=SLURMD,
         shows=("SlurmdReady", "False", 20)),
    Kind("slurmd stopped", "nodes", (2, 60), slurmds("stop"), slurmds("start"), may=SLURMD,
         shows=("SlurmdReady", "False", 20)),
    Kind("slurmd hung", "nodes", (2, 75), slurmds("pause"), slurmds("resume"), may=SLURMD,
         shows=("SlurmdReady", "False", 50)),
    Kind("slurmctld killed", "fleet", (5, 90), slurm("kill", "slurmctld"),
         slurm("start", "slurmctld"), may=SLURM, weight=1, shows=UNKNOWN),
    Kind("slurmctld hung", "fleet", (5, 90), slurm("pause", "slurmctld"),
         slurm("resume", "slurmctld"), may=SLURM, weight=1, shows=UNKNOWN),
    Kind("munge down", "fleet", (5, 90), slurm("stop", "munged"), slurm("start", "munged"),
         may=SLURM, weight=1, shows=UNKNOWN),
    Kind("munge hung", "fleet", (5, 90), slurm("pause", "munged"), slurm("resume", "munged"),
         may=SLURM, weight=1, shows=UNKNOWN),
    Kind("daemon killed", "nodes", (0, 8), kill_daemons, start_daemons, hinders=True,
         restarts=True),
    Kind("credential rotated", "nodes", (0, 0), replace_credentials),
    Kind("broken kubeconfig", "nodes", (10, 60), expire, put_back),
]
