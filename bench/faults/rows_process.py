"""The daemon itself: killed at random moments, many restarted at once."""
import json
import os
import random
import statistics
import subprocess
import time

from fleet import Fleet
from harness.daemon import BINARY
from harness.rig import wait_until
from node import BootstrapNode, warnings_of
from registry import row

UUID = "8a1d3c5e-7f90-4b12-a3c4-d5e6f7081920"
RENEW_EVERY = 20  # rounds
SECOND_EVERY = 10


def broken_files(state):
    """What a reader of the state directory must not find, between two runs."""
    found = []
    for path in state.rglob("*"):
        if not path.is_file() or path.suffix == ".tmp" or path.name == "lock":
            continue
        text = path.read_text(errors="replace")
        whole = {".json": is_json,
                 ".pem": lambda text: "END CERTIFICATE" in text and
                 text.rstrip().endswith("PRIVATE KEY-----")}.get(path.suffix, bool)
        if not whole(text):
            found.append(f"{path.name} ({len(text)} bytes)")
    return found


def is_json(text):
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def second_refused(node):
    """Another daemon with the same state directory ends and says why."""
    words = ["setpriv", f"--reuid={node.uid}", f"--regid={node.uid}", "--clear-groups",
             *map(str, [BINARY, *node.arguments()])]
    done = subprocess.run(words, env={**os.environ, **node.environment}, capture_output=True,
                          text=True, timeout=60, check=False)
    return done.returncode != 0 and "already running" in done.stdout + done.stderr


@row("SIGKILL at random moments", own_nodes=True,
     done=f"up to 1.5 s after each start; certificate about to expire every {RENEW_EVERY}th time, "
          f"second daemon every {SECOND_EVERY}th",
     must="one Node, one lease holder, files whole, no late lease, second daemon rejected")
def killed(trial):
    lab, moments = trial.lab, random.Random(trial.lab.options.seed)
    rounds = lab.options.kills
    trial.same_process = False
    with lab.slurm() as slurm, lab.node(slurm, kind=BootstrapNode) as node:
        node.provision(UUID)
        trial.adopt(node)
        node.start()
        trial.prepare()
        holder, broken = node.lease()["spec"]["holderIdentity"], set()
        due, certificates = 0, {node.certificate()}
        with trial.fault():
            for turn in range(1, rounds + 1):
                if turn % SECOND_EVERY == 0:
                    wait_until(lambda: (node.state_dir / "lock").read_text().strip() ==
                               str(node.daemon.pid), 30, "the lock")
                    trial.require(second_refused(node), f"round {turn}: a second daemon ran")
                node.daemon.kill()
                broken |= set(broken_files(node.state_dir))
                certificates.add(node.certificate())
                if turn % RENEW_EVERY == 1:
                    node.put_ending_certificate()
                    certificates.add(node.certificate())
                    due += 1
                node.start(ready=False)
                time.sleep(moments.uniform(0, 1.5))
        trial.back(within=30)
        trial.require(not broken, f"broken files: {broken}")
        trial.require(node.lease()["spec"]["holderIdentity"] == holder, "another holder")
        uids = lab.watcher.uids(node.name)
        trial.require(len(uids) == 1, f"{len(uids)} Nodes of that name")
        left = [path.name for path in node.state_dir.rglob("*") if path.is_file()]
        trial.require(len(left) < 20, f"{len(left)} files in the state directory")
        # The first, those that were put there, and those that came.
        came = len(certificates | {node.certificate()}) - 1 - due
        trial.note(f"{rounds} kills; {due} certificates due, {came} came")
        trial.require(came >= due, "a certificate that was due did not come")
        trial.finish()


def node_uids(lab):
    """{name: uid} of all Nodes."""
    return {node["metadata"]["name"]: node["metadata"]["uid"]
            for node in lab.plane.admin.get("/api/v1/nodes")["items"]}


@row("restarts at once", own_nodes=True, alone=True,
     done="daemons killed and started together", must="every lease within 30 s, one Node each")
def restarted(trial):
    lab = trial.lab
    count = lab.options.restarts
    with Fleet(lab, count, slurmds=0, links=False) as fleet:
        fleet.start()
        fleet.wait_all_renewed(time.time(), 600)
        uids = node_uids(lab)
        time.sleep(20)  # what the start left to do
        fleet.tail.read()
        lines, codes = [len(node.log()) for node in fleet.nodes], fleet.tail.codes.copy()
        for node in fleet.nodes:
            node.daemon.process.kill()
        for node in fleet.nodes:
            node.daemon.process.wait()
        began = fleet.start_at_once()
        times = fleet.wait_all_renewed(began, 300)
        late = sorted(at - began for at in times.values())
        figures = trial.figures
        figures.seen = (f"lease: first {late[0]:.1f}, half {statistics.median(late):.1f}, "
                        f"last {late[-1]:.1f}")
        figures.right = late[-1]
        time.sleep(20)
        fleet.tail.read()
        per_second = [number for second, number in fleet.tail.by_second.items() if second >= int(began)]
        figures.requests, figures.lasted = sum(per_second), time.time() - began
        last = began + late[-1]
        burst = [number for second, number in fleet.tail.by_second.items()
                 if int(began) <= second <= last]
        trial.note(f"{count} daemons; {sum(burst) / max(1, late[-1]):.0f} requests/s until the last "
                   f"lease, at most {max(per_second)}")
        said = [line for node, length in zip(fleet.nodes, lines)
                for line in warnings_of(node.log()[length:])]
        trial.note(f"{len(said)} warnings" +
                   (f", such as: {said[0].split(' ', 2)[-1][:160]}" if said else ""))
        refused = {code: number for code, number in sorted((fleet.tail.codes - codes).items())
                   if code == 429 or code >= 500}
        trial.note(f"429 or 5xx: {refused or 'none'}")
        trial.require(late[-1] <= 30, f"the last lease after {late[-1]:.1f} s")
        trial.require(node_uids(lab) == uids, "Nodes are other objects than before")
        trial.require(all(node.daemon.process.poll() is None for node in fleet.nodes),
                      "daemons have ended")

