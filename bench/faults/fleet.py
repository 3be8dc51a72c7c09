"""Many daemons on one machine, each with a Node, a credential, a user and a Slurm node of its own."""
import contextlib
import os
import time

from link import Link
from node import FaultNode
from watcher import AuditTail

SLURM_PORT = 9  # of nodes without slurmd: nobody listens there


class Fleet(contextlib.ExitStack):
    """As a context. `slurmds`: how many of the nodes have a slurmd; the others' daemons say that they
    run (node.readyFollows). `links`: the way to each can be broken; hundreds go without."""

    def __init__(self, lab, count, slurmds, settings=None, links=True):
        super().__init__()
        self.lab, self.count, self.links = lab, count, links
        names = [f"c{number:03d}" for number in range(1, count + 1)]
        fields = {"nodes": names[:max(1, slurmds)]}
        if slurmds < count:
            rest = names[max(1, slurmds):]
            lines = [f"{name} NodeAddr=127.0.0.1 Port={SLURM_PORT} CPUs=2" for name in rest]
            fields["conf_lines"] = ["NodeName=" + "\nNodeName=".join(lines),
                                    "PartitionName=rest Nodes=" + ",".join(rest)]
        self.slurm = self.enter_context(lab.slurm(**fields))
        self.nodes = []
        follows = {} if slurmds >= count else {"readyFollows": "daemon"}
        for name in names:
            self.nodes.append(self._node(name, follows, settings or {}))
        self.tail = AuditTail(lab.plane.directory / "audit.log")
        self.callback(self.tail.close)
        self.callback(self._end)

    def _node(self, slurm_node, follows, settings):
        lab, number = self.lab, self.lab.new_number()
        name = f"fleet-{slurm_node}"
        link = Link(lab.loop, lab.api_port) if self.links else None
        node = FaultNode(lab.plane, self.slurm, name, lab.work / f"n{number}", link, number,
                         server=None if link else f"https://127.0.0.1:{lab.api_port}",
                         credential=lab.issue(name))
        changes = {**settings, "slurm": {"nodeName": slurm_node, **settings.get("slurm", {})}}
        changes["node"] = {**follows, **settings.get("node", {}), "name": name}
        node.configure(**changes)
        node.slurm_node = slurm_node
        return node

    def start(self):
        """Returns when every process has been started."""
        for node in self.nodes:
            node.start(ready=False)

    def start_at_once(self):
        """Processes that wait for a pipe to open become the daemons at one moment, which is
        returned."""
        gate = self.lab.work / f"gate{self.lab.new_number()}"
        os.mkfifo(gate)
        for node in self.nodes:
            node.prefix = ["sh", "-c", 'read -r _ <"$0"; exec "$@"', str(gate)]
        self.start()
        time.sleep(2)  # the last of them has come to the pipe
        began = time.time()
        for _ in range(20):  # more than once: who comes late waits for the next time
            with contextlib.suppress(OSError):  # nobody waits
                os.close(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))
            time.sleep(0.2)
        return began

    def wait_all_renewed(self, since, timeout):
        """{name: when its lease was renewed first after that moment}."""
        deadline = time.monotonic() + timeout
        while True:
            self.tail.read()
            found = {node.name: next((at for at in self.tail.renewals[node.name] if at >= since), None)
                     for node in self.nodes}
            missing = [name for name, at in found.items() if at is None]
            if not missing:
                return found
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(missing)} of {self.count} leases not renewed within "
                                   f"{timeout} s, such as {missing[:3]}")
            time.sleep(0.3)

    def _end(self):
        """Their Nodes stay: the control plane ends, too."""
        for node in self.nodes:
            if node.daemon:
                node.daemon.process.kill()
        for node in self.nodes:
            if node.daemon:
                node.daemon.kill()
