#!/usr/bin/env python3
"""Command line of the private Slurm cluster; see README.md or `--help`."""

import argparse
import json
import os
import shlex
import sys

# As a script, this directory is sys.path[0] and this file would hide the
# package of the same name; the package's parent has to take its place.
_HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [os.path.dirname(_HERE)] + [p for p in sys.path if os.path.abspath(p or ".") != _HERE]

from slurmcluster.cluster import ACTIONS, SlurmCluster  # noqa: E402
from slurmcluster.config import ClusterError, ClusterSpec  # noqa: E402
from slurmcluster.states import STATES  # noqa: E402


def parse_arguments(argv):
    """Describe the commands; every one of them takes --dir."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--dir", required=True, help="where everything of this cluster lives (keep it short)")

    parser = argparse.ArgumentParser(prog="slurmcluster.py", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    up = commands.add_parser("up", parents=[common], help="create and start the cluster")
    up.add_argument("--nodes", default="nid000001", help="comma separated node names")
    up.add_argument("--cpus", type=int, help="CPUs per node (default: those of this machine)")
    up.add_argument("--memory", type=int, help="RealMemory in MiB (default: 90 %% of this machine)")
    up.add_argument("--gpus", default="", metavar="[TYPE:]COUNT", help="fake GPUs per node")
    up.add_argument("--cluster-name", default="alps")
    up.add_argument("--slurmd-timeout", type=int, default=300, metavar="SECONDS")
    up.add_argument("--task-plugin", default="task/affinity")
    up.add_argument("--slurmrestd", action="store_true", help="also run slurmrestd on DIR/restd/slurmrestd.sock")
    up.add_argument("--power-save", action="store_true", help="configure power saving (for the power states)")
    up.add_argument("--conf-line", action="append", default=[], metavar="KEY=VALUE", help="replaces or adds a line of slurm.conf")
    up.add_argument("--node-line-extra", default="", metavar="TEXT", help="e.g. 'CoreSpecCount=1 MemSpecLimit=512'")
    up.add_argument("--root", default="", metavar="PATH", help="another root with the programs (root-24.11.sh)")
    up.add_argument("--jwt", action="store_true", help="tokens, and a slurmrestd on a port that wants one")
    up.add_argument("--backup", action="store_true", help="a second slurmctld that takes over from the first")
    up.add_argument("--no-wait", action="store_true", help="do not wait for the nodes to be idle")

    down = commands.add_parser("down", parents=[common], help="end every process of the cluster")
    down.add_argument("--remove", action="store_true", help="delete DIR as well")

    state = commands.add_parser("state", parents=[common], help="bring a node into a state")
    state.add_argument("--node", help="default: the first node")
    state.add_argument("--reason", help="Reason text where the state has one")
    state.add_argument("state", choices=sorted(STATES))

    reset = commands.add_parser("reset", parents=[common], help="bring a node back to idle")
    reset.add_argument("--node", help="default: every node")

    daemon = commands.add_parser("daemon", parents=[common], help="stop, kill, pause ... one daemon")
    daemon.add_argument("action", choices=ACTIONS)
    daemon.add_argument("name", help="munged, slurmctld, slurmctld-backup, slurmd, slurmd:NODE, slurmrestd or slurmrestd-jwt")

    commands.add_parser("env", parents=[common], help="print the export line for a shell")
    commands.add_parser("status", parents=[common], help="print daemons and node states as JSON")
    count = commands.add_parser("question-count", parents=[common], help="print what slurmctld was asked (sdiag) as JSON")
    count.add_argument("--reset", action="store_true", help="then set the counters to zero")
    return parser.parse_args(argv)


def run_command(args):
    """Do what the parsed arguments ask."""
    cluster = SlurmCluster(args.dir)
    if args.command == "up":
        spec = ClusterSpec(
            nodes=[name for name in args.nodes.split(",") if name], cpus=args.cpus, memory=args.memory,
            gpus=args.gpus, cluster_name=args.cluster_name, slurmd_timeout=args.slurmd_timeout,
            task_plugin=args.task_plugin, slurmrestd=args.slurmrestd, power_save=args.power_save,
            conf_lines=args.conf_line, node_line_extra=args.node_line_extra, root=args.root, jwt=args.jwt,
            controllers={"slurmctld": ("ctl1", "127.0.0.1"), "slurmctld-backup": ("ctl2", "127.0.0.2")}
            if args.backup else {})
        cluster.up(spec, wait=not args.no_wait)
        print(f"ready SLURM_CONF={cluster.conf_path}")
    elif args.command == "down":
        cluster.down(remove=args.remove)
    elif args.command == "state":
        print(cluster.set_state(args.node or cluster.nodes[0], args.state, args.reason))
    elif args.command == "reset":
        for node in [args.node] if args.node else cluster.nodes:
            print(cluster.reset(node))
    elif args.command == "daemon":
        cluster.daemon(args.action, args.name)
    elif args.command == "env":
        print(f"export SLURM_CONF={shlex.quote(cluster.conf_path)}")
    elif args.command == "status":
        print(json.dumps(cluster.status(), indent=2))
    elif args.command == "question-count":
        print(json.dumps(cluster.sdiag(reset=args.reset), indent=2))


def main(argv=None):
    """Entry point; a ClusterError becomes one sentence on stderr and exit code 1."""
    args = parse_arguments(argv)
    try:
        run_command(args)
    except ClusterError as error:
        print(f"slurmcluster: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
