"""docs/troubleshooting.md: each message is one that the programs can print, each line of check has its section."""
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/docs"))
import markdown  # noqa: E402
import sources  # noqa: E402

PAGE = (ROOT / "docs/troubleshooting.md").read_text()
HEADINGS = markdown.headings(PAGE)
# Messages of Slurm, Kubernetes and clients.
OF_OTHERS = {"NodeStatusUnknown", "Invalid user id", "Access/permission denied", "403 Forbidden", "no route to host",
             "connection refused", "x509: certificate signed by unknown authority"}
# What stands for something else in a heading, and in a literal of the code.
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b|\bN\b|…")
# Words in capitals that the programs print as they are.
WORDS = ("CSR", "DOWN", "DURATION", "NAME")


@pytest.fixture(scope="module", name="literals")
def texts_of_the_programs():
    """[all string literals of a source file, in parts that have no {} of a format]."""
    def of_file(path):
        texts = (text for kind, text in sources.tokens(sources.without_includes(path)) if kind == "string")
        return {part for text in texts for part in re.split(r"\{[^}]*\}", text)}
    return [of_file(path) for path in [*sources.SOURCES.rglob("*.cpp"), *sources.SOURCES.rglob("*.h")]]


def parts(message):
    """The pieces of a message between its placeholders: ["is named neither like Slurm node", …]."""
    words = "|".join(WORDS)
    marked = re.sub(rf"\b({words})\b", lambda match: "\0" + match.group().lower() + "\0", message)
    pieces = [piece for piece in PLACEHOLDER.split(marked)]
    return [re.sub(r"\0(\w+)\0", lambda match: match.group(1).upper(), piece).strip(" ():") for piece in pieces]


def is_printed(message, literals):
    """Whether one source file has each piece in a literal."""
    return any(is_printed_by(message, of_file) for of_file in literals)


def is_printed_by(message, literals):
    """A capital word is taken as it is, else as a placeholder."""
    def there(piece):
        if any(piece in text for text in literals):
            return True
        halves = [half.strip(" ():;,") for half in re.split(rf"\b(?:{'|'.join(WORDS)})\b", piece)]
        return len(halves) > 1 and all(not half or any(half in text for text in literals) for half in halves)
    return all(not piece or there(piece) for piece in parts(message))


MESSAGES = [message for heading in HEADINGS for message in re.findall(r"`([^`]+)`", heading) if message not in OF_OTHERS]
# "Likewise `A`, `B` and `C`": messages with the same fix.
ALIKE = [message for some in re.findall(r"Likewise((?:,?\s+(?:and\s+)?`[^`]+`)+)", PAGE) for message in re.findall(r"`([^`]+)`", some)]


@pytest.mark.parametrize("message", MESSAGES + ALIKE)
def test_a_heading_is_a_message_of_the_programs(message, literals):
    assert len(max(parts(message), key=len)) >= 5
    assert is_printed(message, literals), parts(message)


def test_messages_with_the_same_fix_are_found():
    assert len(ALIKE) >= 6


def test_what_no_program_prints_is_found(literals):
    assert not is_printed("slurmd has gone fishing", literals)
    assert not is_printed("Node NAME belongs to a teapot", literals)


def test_pieces_of_two_messages_are_none(literals):
    assert is_printed("slurmd NAME", literals) and is_printed("already exists", literals)
    assert not is_printed("slurmd NAME already exists", literals)


def subjects():
    """Of the rows {"subject", [&] … of both commands, and add_rights("subject", …."""
    found = {"configuration"}
    for path in ("cli/check/check_command.cpp", "operator/check.cpp"):
        text = sources.without_includes(sources.SOURCES / path)
        found |= set(re.findall(r'(?:\{\s*|add_rights\()"([\w. ]+)",\s*[\[n]', text))
        for place in re.findall(r"constexpr Place k\w+\{([^}]*)\}", text):
            found |= set(re.findall(r'"([^"]*)"', place)[:2])
    return found


def test_each_line_of_check_has_its_section():
    assert {heading.removeprefix("check: ") for heading in HEADINGS if heading.startswith("check: ")} == subjects()
    assert len(subjects()) > 15
