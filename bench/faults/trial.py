"""What every trial does and measures: a fault has a beginning and an end; the lease, the requests, the
memory and the descriptors are looked at from before it until all is right again."""
import contextlib
import dataclasses
import time

from harness.rig import wait_until
from sample import GROWTH_DESCRIPTORS, GROWTH_MB, Sample
from watcher import is_false

# Seconds between two renewals of a lease that nothing hinders, or from the end of what did; 10 are meant.
LONGEST_PAUSE = 15
SETTLE = 45  # seconds for connections and children of a fault to go


@dataclasses.dataclass
class Row:
    """One fault of the table. `hinders`: while it lasts no lease can be renewed."""
    name: str
    done: str
    must: str
    run: object
    alone: bool = False  # hurts other trials' API server
    hinders: bool = False
    may: tuple = ()  # conditions that the fault makes wrong (watcher.is_false)
    slurm: dict = dataclasses.field(default_factory=dict)
    own_nodes: bool = False  # makes its nodes itself


@dataclasses.dataclass
class Figures:
    """As measured; None is not part of this fault."""
    lease_gap: float = None
    seen: str = ""
    right: float = None
    requests: int = None
    lasted: float = None
    cpu: float = None
    before: Sample = None
    after: Sample = None
    notes: list = dataclasses.field(default_factory=list)


class Trial:
    """A run of one row on a node of its own."""

    def __init__(self, row, lab, node):
        self.row, self.lab, self.node = row, lab, node
        self.figures, self.failures = Figures(), []
        self.allowed_gap = LONGEST_PAUSE
        self.same_process = self.same_node = True
        self.wait_right = node.wait_right if node else None
        self._began = self._ended = None
        self.pauses = []  # [(began, ended)] of faults that hinder

    def require(self, holds, text):
        """A promise; a broken one fails the row, which goes on."""
        if not holds:
            self.failures.append(text)
        return holds

    def note(self, text):
        self.figures.notes.append(text)

    def adopt(self, node):
        """The node of a row that makes its own."""
        self.node, self.wait_right = node, node.wait_right

    def prepare(self):
        """Waits for a quiet daemon and reads what it uses."""
        self.wait_right()
        self.node.wait_renewed()
        before = self.node.lease()["spec"]["renewTime"]
        self.node.wait_renewed(before)
        self.pid, self.uid = self.node.daemon.pid, self.node.node()["metadata"]["uid"]
        self.mark = self.node.audit.mark()
        self.since = time.time()
        self.last_before = max(self.node.audit.renewals())
        self.figures.before = Sample(self.pid)

    @contextlib.contextmanager
    def fault(self, hinders=None):
        """The time of the fault."""
        self._began = time.time()
        try:
            yield
        finally:
            self._ended = time.time()
            if self.row.hinders if hinders is None else hinders:
                self.pauses.append((self._began, self._ended))

    def seen(self, what, within, since=None):
        """What must be seen has been seen just now."""
        took = time.time() - (since or self._began)
        shown = f"{what} {took:.1f}"
        self.figures.seen += ("; " if self.figures.seen else "") + shown
        self.require(took <= within, f"{shown} s, more than {within} s")

    def back(self, within):
        """All is right again: the Node, and a lease renewed after the end of the fault."""
        self.wait_renewed_after(self._ended)
        self.wait_right()
        self.figures.right = time.time() - self._ended
        self.require(self.figures.right <= within,
                     f"right again after {self.figures.right:.1f} s, more than {within} s")

    def wait_renewed_after(self, moment, timeout=120):
        return wait_until(
            lambda: [at for at in self.node.audit.renewals(self.mark) if at >= moment],
            timeout, "a renewal of the lease")[0]

    def finish(self):
        """The figures from the beginning on, and what is promised of all faults."""
        node, figures = self.node, self.figures
        with contextlib.suppress(TimeoutError):
            wait_until(lambda: self._settled(), SETTLE)
        figures.after = Sample(node.daemon.pid)
        if self.same_process:
            self.require(node.daemon.pid == self.pid and node.daemon.process.poll() is None,
                         "the daemon is another process")
            figures.cpu = figures.after.cpu - figures.before.cpu
            grown = figures.after.private - figures.before.private
            self.require(grown <= GROWTH_MB, f"memory grew by {grown:.1f} MB")
            more = figures.after.descriptors - figures.before.descriptors
            self.require(more <= GROWTH_DESCRIPTORS, f"{more} more descriptors")
        if self.same_node:
            self.require(node.node()["metadata"]["uid"] == self.uid, "the Node is another object")
        figures.lasted = time.time() - self.since
        figures.requests = len(node.audit.requests(self.mark))
        self._judge_lease()
        self._judge_conditions()

    def _judge_conditions(self):
        """That a pod or a person is told nothing wrong meanwhile."""
        for change in self.lab.watcher.changes(self.node.name, self.since):
            if is_false(change, self.row.may, bool(self.pauses)):
                self.failures.append(f"{change.type} {change.status} ({change.reason}) "
                                     f"{change.at - self.since:.0f} s after the beginning")

    def _settled(self):
        now = Sample(self.node.daemon.pid)
        return now.descriptors <= self.figures.before.descriptors and \
            now.private <= self.figures.before.private + GROWTH_MB

    def _judge_lease(self):
        times = [self.last_before, *self.node.audit.renewals(self.mark), time.time()]
        gaps = list(zip(times, times[1:]))
        self.figures.lease_gap = max(end - begin for begin, end in gaps)
        for begin, end in gaps:
            idle = unhindered(begin, end, self.pauses)
            self.require(idle <= self.allowed_gap,
                         f"lease not renewed for {end - begin:.1f} s, {idle:.1f} s of it without a reason")


def unhindered(begin, end, pauses):
    """The longest time between the two in which no fault hindered the lease."""
    longest, at = 0.0, begin
    for first, last in sorted(pauses):
        if last > at and first < end:
            longest, at = max(longest, first - at), last
    return max(longest, end - at)
