"""The table as Markdown, and its place in the document."""
import subprocess
import time

BEGIN, END = "<!-- table: ./dev faults --write -->", "<!-- end -->"
HEAD = ("| fault | what is done | what must be seen | seen after | right again after | longest "
        "lease gap | requests | CPU | RSS, descriptors | |")


def number(value, unit="", digits=1):
    return "" if value is None else f"{value:.{digits}f}{unit}"


def line(trial):
    figures, row = trial.figures, trial.row
    use = ""
    if figures.before and figures.after:
        use = (f"{figures.before.rss:.1f} → {figures.after.rss:.1f} MB, "
               f"{figures.before.descriptors} → {figures.after.descriptors}")
    cpu = "" if figures.cpu is None else f"{figures.cpu:.2f} s"
    requests = "" if figures.requests is None else \
        f"{figures.requests} in {figures.lasted:.0f} s"
    verdict = "**fails**: " + "; ".join(trial.failures) if trial.failures else "holds"
    notes = "".join(f"; {note}" for note in figures.notes)
    cells = [row.name, row.done, row.must, figures.seen, number(figures.right, " s"),
             number(figures.lease_gap, " s"), requests, cpu, use, verdict + notes]
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def markdown(trials, minutes, loads, options):
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True,
                            text=True, check=False).stdout.strip()
    failed = sum(1 for trial in trials if trial.failures)
    about = (f"{time.strftime('%Y-%m-%d', time.gmtime())}, commit {commit}: {len(trials)} faults, "
             f"{failed} not as promised, in {minutes:.0f} minutes; {options.at_once} at the same "
             f"time; load average {' / '.join(f'{one:.1f}' for one in loads)}; "
             f"seed {options.seed}.")
    return "\n".join([about, "", HEAD, "|---" * 10 + "|", *map(line, trials)])


def write(document, text):
    before, _, rest = document.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    document.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")
