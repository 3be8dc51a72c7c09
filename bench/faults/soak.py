"""./dev faults soak: random faults on many daemons, and what must hold all along: no lease that is
late without a reason, no condition that says what is not so, no memory and no descriptors that
grow."""
import contextlib
import dataclasses
import random
import time

from fleet import Fleet
from invariants import Invariants
from lab import Lab
from node import SETTINGS
from sample import load
from slurmcluster.config import ClusterError
from soak_faults import KINDS

WARM_UP = 60  # seconds until memory and descriptors are those of a daemon that has settled
QUIET_EVERY = 300  # seconds between two readings of memory and descriptors
QUIET = 75  # seconds without a fault before a reading
PAUSE = (2, 15)  # seconds between two faults
ATTEMPTS = 5
LAB_ERRORS = (ClusterError, RuntimeError, OSError)
MOST = 5  # faults at the same time


@dataclasses.dataclass
class Fault:
    """One that was made."""
    kind: object
    nodes: list
    began: float
    ends: float
    ended: float = None


class Soak:
    """Makes and ends faults, and has the invariants looked at."""

    def __init__(self, fleet, seed):
        self.fleet, self.random = fleet, random.Random(seed)
        self.current, self.past = [], []
        self.invariants = Invariants(fleet, self)

    def faults(self):
        return self.past + self.current

    def run(self, minutes):
        over = time.time() + minutes * 60
        self.quiet(WARM_UP, first=True)
        while time.time() < over:
            self.storm(min(over, time.time() + QUIET_EVERY))
            self.quiet(QUIET)
        self.invariants.at_the_end()

    def storm(self, until):
        """Faults at random moments."""
        next_one = time.time()
        while time.time() < until:
            for fault in [one for one in self.current if one.ends <= time.time()]:
                self.end(fault)
            if time.time() >= next_one and len(self.current) < MOST:
                self.begin()
                next_one = time.time() + self.random.uniform(*PAUSE)
            self.invariants.look()
            time.sleep(0.5)
        for fault in list(self.current):
            self.end(fault)

    def quiet(self, seconds, first=False):
        deadline = time.time() + seconds
        while time.time() < deadline:
            self.invariants.look()
            time.sleep(1)
        self.invariants.look_at_resources(first)

    def begin(self):
        kind = self.random.choices(KINDS, [one.weight for one in KINDS])[0]
        count = self.random.randint(1, max(1, len(self.fleet.nodes) // 5))
        nodes = self.fleet.nodes if kind.of == "fleet" else \
            self.random.sample(self.fleet.nodes, count)
        # Of two faults of one thing the end of the first would be that of the other.
        busy = {id(node) for fault in self.current if fault.kind.of == "nodes"
                for node in fault.nodes}
        if kind.of == "nodes":
            nodes = [node for node in nodes if id(node) not in busy]
        if not nodes or any(kind.excludes(fault.kind) for fault in self.current):
            return
        now = time.time()
        fault = Fault(kind, nodes, now, now + self.random.uniform(*kind.lasts))
        self.current.append(fault)
        say(f"{kind.name}: " + ("all" if kind.of == "fleet" else
                                " ".join(node.name for node in nodes)))
        try:
            kind.begin(self.fleet, nodes)
        except LAB_ERRORS as error:  # part of it may have happened: it is ended as any other
            say(f"lab: {kind.name}: {error}")
        if kind.lasts == (0, 0):
            self.end(fault)

    def end(self, fault):
        self.insist(fault)
        fault.ended = time.time()
        self.current.remove(fault)
        self.past.append(fault)
        if fault.kind.lasts != (0, 0):
            say(f"{fault.kind.name}: over after {fault.ended - fault.began:.0f} s")

    def insist(self, fault):
        """The lab is as loaded as the machine: what did not start in time is started again."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return fault.kind.end(self.fleet, fault.nodes)
            except LAB_ERRORS as error:
                say(f"lab: end of {fault.kind.name}: {error}")
                if attempt == ATTEMPTS:
                    raise
                self.invariants.look()


def say(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def run(options):
    settings = {**SETTINGS, "slurm": {**SETTINGS["slurm"], "pollInterval": "15s",
                                      "staleAfter": "40s", "maxBackoff": "15s"}}
    with contextlib.ExitStack() as at_end:
        lab = at_end.enter_context(Lab())
        lab.begin()
        fleet = at_end.enter_context(Fleet(lab, options.daemons, options.daemons, settings))
        fleet.start()
        fleet.wait_all_renewed(0, 300)
        for node in fleet.nodes:
            node.wait_right(300)
        say(f"{options.daemons} daemons, seed {options.seed}, load average {load():.1f}")
        soak = Soak(fleet, options.seed)
        began = time.time()
        try:
            soak.run(options.minutes)
        except KeyboardInterrupt:
            say("interrupted")
        finally:
            broken = soak.invariants.report(time.time() - began, load())
        return broken
