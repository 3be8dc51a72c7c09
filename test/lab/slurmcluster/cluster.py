"""The cluster itself: start, end, daemons and questions."""

import os
import re
import signal
import subprocess

from . import daemons, states
from .config import SBIN_PATH, ClusterError, ClusterSpec, Layout, create_tree, find_program, write_slurm_conf
from .isolation import in_root, program_in_root, write_wrappers
from .processes import MARKER, ProcessTable, wait_for

ACTIONS = ("stop", "start", "restart", "kill", "pause", "resume")
COMMAND_SECONDS = 30  # no Slurm command we use takes longer, even with slurmctld gone
KINDS = ("CLOUD", "DYNAMIC_NORM", "DYNAMIC_FUTURE")  # of nodes, shown among their states
CLIENTS = ("sinfo", "scontrol", "sbatch", "scancel", "squeue", "sdiag")


class SlurmCluster:
    """One private cluster under one directory."""

    def __init__(self, directory):
        self.layout = Layout(directory)
        self.processes = ProcessTable(self.layout)
        self.spec = None
        self._release = None

    @property
    def nodes(self):
        """Node names."""
        return list(self.spec.nodes)

    @property
    def release(self):
        """Of the programs, as numbers: (22, 5)."""
        if self._release is None:
            words = self.command("sinfo", "--version").stdout.split()
            self._release = tuple(int(part) for part in words[-1].split(".")[:2])
        return self._release

    @property
    def bin_dir(self):
        """Where the clients are if they are not the machine's own, or an empty string."""
        return self.layout.at("bin") if self.spec.root else ""

    @property
    def conf_path(self):
        """The slurm.conf that clients need as SLURM_CONF."""
        return self.layout.conf

    @property
    def env(self):
        """Environment for clients: ours, with this cluster's SLURM_CONF only."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM_", "SBATCH_", "MUNGE_"))}
        clean["SLURM_CONF"] = self.conf_path
        clean["PATH"] = clean.get("PATH", "") + ":" + SBIN_PATH
        return clean

    def own_env(self, **more):
        """Environment of what belongs to the cluster and has to end with it."""
        return {"PATH": SBIN_PATH, "LANG": "C.UTF-8", "SLURM_CONF": self.conf_path, MARKER: self.layout.root, **more}

    def program(self, name, user=None):
        """The words that begin a command: the program, or how to run it in the other root."""
        root = self.spec.root
        return [*in_root(root, user), program_in_root(root, name)] if root else [find_program(name)]

    # -- up and down --------------------------------------------------------

    def up(self, **fields):
        """Create everything anew under the directory and start it, as ClusterSpec describes it."""
        self.spec = spec = ClusterSpec(**fields)
        spec.complete()
        rest = ["slurmrestd"] if spec.slurmrestd or spec.jwt else []
        for program in ["munged", "munge", "slurmctld", "slurmd", *CLIENTS, *rest]:
            self.program(program)
        self.layout.check_socket_paths(spec)
        self._claim_directory()
        create_tree(self.layout, spec)
        if spec.root:
            write_wrappers(self.layout.at("bin"), spec.root, [*CLIENTS, "slurmd"])
        write_slurm_conf(self.layout, spec)
        try:
            for name in ["munged", *self._controllers()]:
                self.daemon("start", name)
            for node in spec.nodes:  # all at once, then wait for each
                self._spawn(f"slurmd.{node}")
            for node in spec.nodes:
                self._wait_until_answering(f"slurmd.{node}")
            for name in self._rest_daemons():
                self.daemon("start", name)
            wait_for("all nodes to be idle", 60, lambda: all(self.node_state(node) == ["IDLE"] for node in self.nodes))
        except BaseException:
            self.down()
            raise
        return self

    def _claim_directory(self):
        root = self.layout.root
        os.makedirs(root, mode=0o755, exist_ok=True)
        if os.listdir(root) and not os.path.exists(self.layout.conf):
            raise ClusterError(f"{root} is not empty and not a cluster of ours")
        running = [name for name in self.processes.recorded() if self.processes.pid(name)]
        if running or self.processes.strays():
            raise ClusterError(f"a cluster is still running in {root}; run `down` first")

    def down(self):
        """End every process, and be sure of it; DIR with its logs stays."""
        hold = self.layout.at("hold")
        for node in os.listdir(hold) if os.path.isdir(hold) else []:
            states.release_epilog(self, node)
        order = {"slurmrestd": 0, "slurmctld": 1, "munged": 3}
        names = sorted(self.processes.recorded(), key=lambda name: order.get(name, 2))
        for name in names:
            pid = self.processes.pid(name)
            if pid:
                self.processes.signal_quietly(pid, signal.SIGCONT)
        for name in names:
            self.processes.stop(name, seconds=5, force=True)
        self.processes.kill_strays()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.down()

    # -- daemons ------------------------------------------------------------

    def daemon_names(self, name="all"):
        """Internal names ("slurmd.NODE") for what a user may write."""
        if name == "all":
            return ["munged", *self._controllers(), *self.daemon_names("slurmd"), *self._rest_daemons()]
        if name in ("munged", *daemons.CONTROLLERS, *daemons.REST_DAEMONS):
            return [name]
        kind, _, node = name.partition(":")
        if kind == "slurmd" and (not node or node in self.nodes):
            return [f"slurmd.{one}" for one in ([node] if node else self.nodes)]
        raise ClusterError(f"no daemon '{name}' in this cluster")

    def _controllers(self):
        return list(self.spec.controllers) or ["slurmctld"]

    def _rest_daemons(self):
        return [*(["slurmrestd"] if self.spec.slurmrestd else []), *(["slurmrestd-jwt"] if self.spec.jwt else [])]

    def pid(self, name):
        """Pid of a living daemon ("slurmd" means that of the first node), or None."""
        return self.processes.pid(self.daemon_names(name)[0])

    def daemon(self, action, name, *arguments):
        """stop, start, restart, kill, pause or resume; returns when it is so."""
        if action not in ACTIONS:
            raise ClusterError(f"no action '{action}'; there are: {', '.join(ACTIONS)}")
        for one in self.daemon_names(name):
            if action in ("stop", "restart"):
                self.processes.stop(one)
            if action in ("start", "restart"):
                self._spawn(one, *arguments)
                self._wait_until_answering(one)
            if action in ("kill", "pause", "resume"):
                getattr(self.processes, action)(one)

    def _spawn(self, name, *arguments):
        """Start one daemon in its foreground mode."""
        words, environment, user = daemons.start_of(self, name)
        self.processes.spawn(name, [*words, *arguments], environment, user)

    def _wait_until_answering(self, name):
        def answers():
            if self.processes.pid(name) is None:
                raise ClusterError(f"{name} ended: {self.processes.log_tail(name)}")
            return daemons.answers(self, name)
        wait_for(f"{name} to answer (last output: {self.processes.log_tail(name, 2)})", 30, answers)

    # -- commands and questions ---------------------------------------------

    def command(self, *words, environment=None, check=True, seconds=COMMAND_SECONDS):
        """Run one client command; a CompletedProcess with text."""
        shown = " ".join(words)
        try:
            done = subprocess.run([*self.program(words[0]), *words[1:]], env=environment or self.own_env(),
                                  capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL,
                                  timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            raise ClusterError(f"{shown} took longer than {seconds} s") from None
        if check and done.returncode != 0:
            died = "" if self.processes.pid("slurmctld") else \
                f" (slurmctld has ended; last output: {self.processes.log_tail('slurmctld', 2)})"
            raise ClusterError(f"{shown}: exit {done.returncode}: {(done.stderr or done.stdout).strip()}{died}")
        return done

    def succeeds(self, *words, environment=None):
        return self.command(*words, environment=environment, check=False).returncode == 0

    def token(self, user="root", lifespan=3600):
        """A JWT for that user, valid for so many seconds (needs `jwt`)."""
        words = ["scontrol", "token", f"username={user}", f"lifespan={lifespan}"]
        return self.command(*words).stdout.strip().partition("SLURM_JWT=")[2]

    def sinfo(self, *arguments, check=True):
        """Output of `sinfo` with these arguments."""
        return self.command("sinfo", *arguments, check=check).stdout

    def show_node(self, node):
        """Text of `scontrol show node`: the full view, which also refreshes what sinfo sees."""
        return self.command("scontrol", "--future", "show", "node", node, check=False).stdout

    def node_state(self, node):
        """State tokens, base state first: ["MIXED", "DRAIN"]; [] if Slurm does not show the node.

        Without what only says of which kind the node is.
        """
        # State= comes before Reason=, which may contain anything.
        found = re.search(r"^\s+State=(\S+)", self.show_node(node), re.MULTILINE)
        return [token for token in found.group(1).split("+") if token not in KINDS] if found else []

    def set_state(self, node, state, reason=None):
        """Bring a node into a state and wait until Slurm shows it; see states.py."""
        return states.set_state(self, node, state, reason)

    def reset(self, node):
        """Bring a node back to plain idle."""
        return states.reset(self, node)

    def submit(self, node, *arguments):
        """Submit a job that sleeps on a node; returns its id once its step runs there."""
        job = self.command("sbatch", "--parsable", "--job-name=slurmcluster", "--output=/dev/null", "--chdir=/",
                           "--time=60", f"--nodelist={node}", *arguments, "--wrap=exec sleep 3600").stdout.strip()
        socket_path = self.layout.at("spool", node, f"{node}_{job}.4294967291")
        wait_for(f"job {job} to run on {node}", 30,
                 lambda: os.path.exists(socket_path) and self.job_state(job) == "RUNNING")
        return job

    def job_state(self, job):
        """Nothing if slurmctld does not know it."""
        return self.command("squeue", "-h", "-t", "all", "-j", job, "-o", "%T", check=False).stdout.strip()

    def sdiag(self, reset=False):
        """What slurmctld was asked since its start or the last reset.

        {"by_type": {"REQUEST_NODE_INFO_SINGLE": {"count":…, "ave_time":…, "total_time":…}}, "by_user": {"root": …}};
        times in microseconds. The question itself (REQUEST_STATS_INFO) counts too, from the next time on.
        """
        result = {"by_type": {}, "by_user": {}}
        section = None
        for line in self.command("sdiag").stdout.splitlines():
            if line.startswith("Remote Procedure Call statistics by "):
                section = "by_user" if " by user" in line else "by_type"
            elif not line.startswith(("\t", " ")):
                section = None
            found = section and re.match(r"\s+(\S+)\s*\(\s*\d+\)\s+count:(\d+)\s+ave_time:(\d+)\s+total_time:(\d+)", line)
            if found:
                result[section][found.group(1)] = {
                    "count": int(found.group(2)), "ave_time": int(found.group(3)), "total_time": int(found.group(4))}
        if reset:
            self.command("sdiag", "--reset")
        return result
