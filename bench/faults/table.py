"""The table as Markdown, and its place in the document."""
import subprocess
import time

BEGIN, END = "<!-- table: ./dev faults --write -->", "<!-- end -->"
HEAD = ("| fault | what is done | what must be seen | seen after, s | right again after, s | longest lease "
        "gap, s | requests in s | CPU, s | RSS, MB; descriptors | notes |")


def number(value, digits=1):
    return "" if value is None else f"{value:.{digits}f}"


def line(trial):
    figures, row = trial.figures, trial.row
    use = ""
    if figures.before and figures.after:
        use = (f"{figures.before.rss:.1f} → {figures.after.rss:.1f}; "
               f"{figures.before.descriptors} → {figures.after.descriptors}")
    requests = "" if figures.requests is None else \
        f"{figures.requests} in {figures.lasted:.0f}"
    verdict = ["**fails**: " + "; ".join(trial.failures)] if trial.failures else []
    cells = [row.name, row.done, row.must, figures.seen, number(figures.right), number(figures.lease_gap),
             requests, number(figures.cpu, 2), use, "; ".join(verdict + figures.notes)]
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
