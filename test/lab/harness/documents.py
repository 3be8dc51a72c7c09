"""Outputs that the documents show, held against what the programs print.

A document shows a command as a fenced block that begins with "$ " and the command. What differs from
machine to machine (times, process IDs, UUIDs, addresses, names of requests) is made equal on both sides;
every other word has to be there as it is."""
import re
import socket

from harness.api import repository

_EQUAL = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "TIME"),
    (r"\b\d\d:\d\d:\d\dZ", "TIME"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "UUID"),
    (r"node-csr-[\w-]+…?", "REQUEST"),
    (r"\b\d{1,3}(\.\d{1,3}){3}:\d+", "ADDRESS"),
    (r"\bpid \d+", "pid N"),
    (r"\b\d+ ms\b", "N ms"),
    (r"\b\d+ s ago\b", "N s ago"),
    (r"[ \t]+(?=\n|$)", ""),
]


def shape(text, names=()):
    """The text without what no two machines share; `names` are pairs (what is there, what the document
    calls it)."""
    for there, documented in names:
        text = re.sub(rf"(?<![\w-]){re.escape(there)}(?![\w-])", documented, text)
    for pattern, word in _EQUAL:
        text = re.sub(pattern, word, text)
    return text.strip("\n")


def shown(document, command):
    """The outputs that a document of docs/ shows for a command, in its order."""
    text = (repository() / "docs" / document).read_text()
    blocks = re.findall(r"(?ms)^```\n\$ (.*?)\n(.*?)^```", text)
    found = [output for words, output in blocks if words == command]
    assert found, f"docs/{document} shows no output of: {command}"
    return found


def assert_shown(document, command, printed, names=(), number=0):
    """That the document shows what the command printed; a line of "…" alone stands for any lines."""
    documented = shape(shown(document, command)[number], names).splitlines()
    real = shape(printed, names).splitlines()
    expected = ["" if line == "…" else re.escape(line) + "\n" for line in documented]
    pattern = "".join(part or "(.*\n)*" for part in expected)
    assert re.fullmatch(pattern, "\n".join(real) + "\n"), (
        f"docs/{document} shows another output of: {command}\n--- the document\n" +
        "\n".join(documented) + "\n--- the program\n" + "\n".join(real))


# Of a line that another machine prints otherwise: times, numbers, names of machine, system and kernel.
_DIFFERS = [(r"\x1b\[[0-9;]*m", ""), (r"\w{3}, \d\d \w{3} \d{4} [\d:]{8} \+\d{4}", ""),
            (r"  \(its times left out\)", ""), (r"(?<=\s)\d{1,3}(\.\d{1,3}){3}(?=\s)", "ADDRESS"),
            (r"\S+ GNU/Linux.* slurm://", "SYSTEM slurm://"), (r"\bUbuntu .* slurm://", "SYSTEM slurm://"), (r"\d+", "N")]


def _line(text):
    for pattern, word in _DIFFERS:
        text = re.sub(pattern, word, text)
    return " ".join(text.split())


def printed_in_order(documented, printed):
    """The lines of the document that the program does not print after those before them. "…" stands for any lines; the
    host of the demo is called vm in the documents."""
    host = socket.gethostname().split(".")[0].lower()
    lines = [_line(line) for line in re.sub(rf"(?<![\w-]){re.escape(host)}(?![\w-])", "vm", printed).splitlines()]
    missing, at = [], 0
    for line in map(_line, documented.splitlines()):
        if line in ("", "…"):
            continue
        if line in lines[at:]:
            at = lines.index(line, at) + 1
        else:
            missing.append(line)
    return missing
