"""What must hold on every node of a soak, whatever is broken at that moment."""
import collections
import contextlib
import time

from harness.rig import wait_until
from sample import GROWTH_DESCRIPTORS, GROWTH_MB, Sample
from trial import LONGEST_PAUSE, unhindered
from watcher import is_false

AUDIT_DELAY = 5  # seconds until a request is in the audit log
MEMORY = 600  # seconds in which a fault may explain something
RIGHT_WITHIN = 240  # seconds after the last fault


class Invariants:
    """look() often; the rest in quiet times."""

    def __init__(self, fleet, soak):
        self.fleet, self.soak = fleet, soak
        self.watcher = fleet.lab.watcher
        self.began = time.time()
        self.judged = {node.name: None for node in fleet.nodes}  # the last renewal
        self.seen = 0  # of the watcher's changes
        self.base = {}  # {name: (pid, Sample)}
        self.growth = collections.defaultdict(float)
        self.longest = 0.0
        self.violations, self.unseen = [], []

    def violated(self, text):
        """Said when it happens, and at the end."""
        self.violations.append(text)
        print(f"[{time.strftime('%H:%M:%S')}] VIOLATION {text}", flush=True)

    def of(self, node):
        """The faults that hurt this node lately."""
        now = time.time()
        return [fault for fault in self.soak.faults()
                if (fault.ended is None or fault.ended > now - MEMORY) and node in fault.nodes]

    def look(self):
        self.fleet.tail.read()
        for node in self.fleet.nodes:
            self._look_at_lease(node)
            self._look_at_process(node)
        self._look_at_conditions()
        for fault in self.soak.current:
            self._look_for_signs(fault)

    # -- leases ------------------------------------------------------------------------------

    def _look_at_lease(self, node):
        times = self.fleet.tail.renewals[node.name]
        last = self.judged[node.name]
        if last is None:
            self.judged[node.name] = (times[-1], False) if times else (self.began, False)
            return
        begin, complained = last
        later = [at for at in times if at > begin]
        for at in later:
            self._judge(node, begin, at, complained)
            begin, complained = at, False
        now = time.time() - AUDIT_DELAY
        if not complained and now > begin:
            complained = self._judge(node, begin, now, False)
        self.judged[node.name] = (begin, complained)
        del times[:-1]

    def _judge(self, node, begin, end, complained):
        pauses = [(fault.began, (fault.ended or end) + fault.kind.unnoticed)
                  for fault in self.of(node) if fault.kind.hinders]
        unexplained = unhindered(begin, end, pauses)
        self.longest = max(self.longest, unexplained)
        if unexplained > LONGEST_PAUSE and not complained:
            self.violated(f"{node.name}: lease not renewed for {end - begin:.1f} s, "
                          f"{unexplained:.1f} s without a reason")
            return True
        return complained

    # -- conditions --------------------------------------------------------------------------

    def _look_at_conditions(self):
        nodes = {node.name: node for node in self.fleet.nodes}
        changes, self.seen = self.watcher.from_index(self.seen)
        for change in changes:
            if change.node not in nodes or change.at < self.began:
                continue
            around = [fault for fault in self.of(nodes[change.node])
                      if fault.began <= change.at and
                      (fault.ended is None or change.at <= fault.ended + fault.kind.after)]
            may = tuple(kind for fault in around for kind in fault.kind.may)
            hindered = any(fault.kind.hinders for fault in around)
            if is_false(change, may, hindered):
                names = ", ".join(sorted({fault.kind.name for fault in around})) or "no fault"
                self.violated(f"{change.node}: {change.type} {change.status} ({change.reason}: "
                              f"{change.message}) during {names}")

    def _look_for_signs(self, fault):
        """What a fault makes wrong must be on the Node in time: True that is not so is false as well."""
        if not fault.kind.shows:
            return
        kind, status, within = fault.kind.shows
        now = time.time()
        if now < fault.began + within:
            return
        for node in fault.nodes:
            found = self.watcher.latest(node.name).get(kind)
            hindered = any(other.kind.hinders and (other.ended or now) > fault.began - within
                           for other in self.of(node))
            if found and found.status != status and not hindered and \
                    (fault, node.name) not in self.unseen:
                self.unseen.append((fault, node.name))
                self.violated(f"{node.name}: {kind} still {found.status} {now - fault.began:.0f} s "
                              f"after {fault.kind.name}")

    def _look_at_process(self, node):
        if node.daemon.process.poll() is None:
            return
        if not any(fault.kind.restarts and fault.ended is None for fault in self.of(node)):
            self.violated(f"{node.name}: the daemon ended with {node.daemon.process.returncode}: "
                          f"{node.log()[-400:]}")
            node.start(ready=False)

    # -- in quiet times ------------------------------------------------------------------------

    def look_at_resources(self, first):
        """All faults are over: the nodes are right, and nothing has grown."""
        for node in self.fleet.nodes:
            with contextlib.suppress(TimeoutError):
                node.wait_right(1)
                continue
            self._wait_right(node)
        for node in self.fleet.nodes:
            sample, known = Sample(node.daemon.pid), self.base.get(node.name)
            if first or known is None or known[0] != node.daemon.pid:
                self.base[node.name] = (node.daemon.pid, sample)
                continue
            grown = sample.private - known[1].private
            more = sample.descriptors - known[1].descriptors
            self.growth["memory"] = max(self.growth["memory"], grown)
            self.growth["descriptors"] = max(self.growth["descriptors"], more)
            if grown > GROWTH_MB:
                self.violated(f"{node.name}: private memory {known[1].private:.1f} → "
                              f"{sample.private:.1f} MB")
            if more > GROWTH_DESCRIPTORS:
                self.violated(f"{node.name}: descriptors {known[1].descriptors} → "
                              f"{sample.descriptors}")

    def _wait_right(self, node):
        try:
            wait_until(lambda: self.look() or self._is_right(node), RIGHT_WITHIN)
        except TimeoutError:
            wrong = {kind: (one.status, one.reason)
                     for kind, one in self.watcher.latest(node.name).items()}
            self.violated(f"{node.name}: not right {RIGHT_WITHIN} s after the last fault: {wrong}")

    def _is_right(self, node):
        with contextlib.suppress(TimeoutError):
            node.wait_right(1)
            return True
        return False

    def at_the_end(self):
        self.look()

    def report(self, seconds, load):
        """Printed; the exit status."""
        faults = collections.Counter(fault.kind.name for fault in self.soak.faults())
        hurt = sum(len(fault.nodes) for fault in self.soak.faults())
        print(f"{seconds / 60:.0f} minutes, {len(self.fleet.nodes)} daemons, "
              f"{sum(faults.values())} faults on {hurt} nodes, load average {load:.1f}")
        print(", ".join(f"{number}× {name}" for name, number in sorted(faults.items())))
        print(f"longest time without a renewal that no fault explains: {self.longest:.1f} s")
        print(f"most growth of a daemon: {self.growth['memory']:.2f} MB private memory, "
              f"{self.growth['descriptors']:.0f} descriptors")
        print(f"requests: {sum(self.fleet.tail.requests.values())}, by status "
              f"{dict(sorted(self.fleet.tail.codes.items()))}")
        print(f"{len(self.violations)} violations")
        for text in self.violations:
            print("  " + text)
        return 1 if self.violations else 0
