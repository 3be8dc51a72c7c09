#!/usr/bin/python3
"""./dev faults: breaks, one after the other, what slurmlet depends on, and measures what a Node and
its lease look like meanwhile. See docs/contributors/faults.md."""
import argparse
import concurrent.futures
import contextlib
import pathlib
import sys
import threading
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "test/lab"), str(ROOT / "test/machine")]

import rows_api  # noqa: E402,F401
import rows_identity  # noqa: E402,F401
import rows_slurm  # noqa: E402,F401
import rows_machine  # noqa: E402,F401
import rows_process  # noqa: E402,F401
from lab import Lab  # noqa: E402
from registry import ROWS  # noqa: E402
from sample import load  # noqa: E402
from table import markdown, write  # noqa: E402
from trial import Trial  # noqa: E402

DOCUMENT = ROOT / "docs/contributors/faults.md"
_printing = threading.Lock()


def say(text):
    with _printing:
        print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def run(row, lab):
    """A Trial that has been made, whatever came of it."""
    trial, began = Trial(row, lab, None), time.monotonic()
    try:
        if row.own_nodes:
            row.run(trial)
        else:
            with lab.slurm(**row.slurm) as slurm, lab.node(slurm) as node:
                trial.adopt(node)
                node.start()
                trial.prepare()
                row.run(trial)
                trial.finish()
    except Exception as error:  # pylint: disable=broad-except  # one row must not end the others
        trial.failures.append(f"{type(error).__name__}: {str(error)[:600]}")
        traceback.print_exc()
    keep_log(trial, lab)
    verdict = "failed: " + "; ".join(trial.failures) if trial.failures else "ok"
    say(f"{row.name} ({time.monotonic() - began:.0f} s): {verdict}")
    return trial


def keep_log(trial, lab):
    """The daemon's log of a row that failed stays."""
    if trial.failures and trial.node:
        logs = ROOT / "build/faults"
        logs.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):
            name = trial.row.name.replace(" ", "-").replace(":", "").replace(",", "")
            (logs / f"{name}.log").write_text(trial.node.log())


def run_table(rows, options):
    began, loads = time.time(), [load()]
    with Lab() as lab:
        lab.options = options
        lab.begin()
        beside = [row for row in rows if not row.alone]
        with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
            trials = list(pool.map(lambda row: run(row, lab), beside))
        loads.append(load())
        trials += [run(row, lab) for row in rows if row.alone]
        loads.append(load())
    trials.sort(key=lambda trial: ROWS.index(trial.row))
    text = markdown(trials, (time.time() - began) / 60, loads, options)
    print(text)
    if options.write:
        write(DOCUMENT, text)
    return 1 if any(trial.failures for trial in trials) else 0


def arguments():
    parser = argparse.ArgumentParser(prog="./dev faults", description=__doc__)
    parser.add_argument("--list", action="store_true", help="names the faults")
    parser.add_argument("--only", action="append", metavar="NAME",
                        help="faults whose name contains this; may be repeated")
    parser.add_argument("--write", action="store_true", help="writes the table into docs/contributors/faults.md")
    parser.add_argument("--at-once", type=int, default=4, metavar="N",
                        help="faults of different nodes made at the same time (default: 4)")
    parser.add_argument("--kills", type=int, default=200, metavar="N",
                        help="of the fault SIGKILL (default: 200)")
    parser.add_argument("--restarts", type=int, default=300, metavar="N",
                        help="daemons that start at once (default: 300)")
    parser.add_argument("--seed", type=int, help="of random moments (default: another each time)")
    commands = parser.add_subparsers(dest="command")
    soak = commands.add_parser("soak", help="random faults on many daemons")
    soak.add_argument("--minutes", type=float, default=120)
    soak.add_argument("--daemons", type=int, default=50)
    soak.add_argument("--seed", type=int, default=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write and options.only:
        parser.error("--write is for the whole table, not for --only")
    return options


def main():
    options = arguments()
    options.seed = options.seed if options.seed is not None else int(time.time())
    if options.command == "soak":
        import soak  # pylint: disable=import-outside-toplevel
        return soak.run(options)
    rows = [row for row in ROWS
            if not options.only or any(part in row.name for part in options.only)]
    if options.list or not rows:
        print("\n".join(f"{row.name}: {row.done}" for row in ROWS))
        return 0 if options.list else 2
    say(f"seed {options.seed}, load average {load():.1f}")
    return run_table(rows, options)


if __name__ == "__main__":
    sys.exit(main())
