"""Markdown as these pages use it: fenced blocks, links, headings and their anchors, sentences."""
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(?P<indent> *)(?P<mark>```+|~~~+) *(?P<language>[\w+-]*)")
# Of contributors: measurements and decisions, where a sentence may be what it was.
FOR_CONTRIBUTORS = ("docs/contributors/", "CONTRIBUTING.md", "bench/", "test/")


def pages():
    """All Markdown of the repository that git knows, or would know after git add."""
    done = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT, check=True,
                          capture_output=True, text=True)
    return [ROOT / name for name in sorted(set(done.stdout.split())) if (ROOT / name).exists()]


def name(page):
    return str(page.relative_to(ROOT))


def for_users(page):
    return not name(page).startswith(FOR_CONTRIBUTORS)


def made(page):
    """Whether a program writes it."""
    return "<!-- Made by " in page.read_text()


def blocks(text):
    """[(first line's number, language, lines of code)] of fenced blocks."""
    out, open_, indent = [], None, 0
    for number, line in enumerate(text.split("\n"), 1):
        fence = FENCE.match(line)
        if open_ is None and fence:
            open_, indent, mark = (number, fence["language"], []), len(fence["indent"]), fence["mark"]
        elif open_ is not None and line.strip() == mark:
            out.append(open_)
            open_ = None
        elif open_ is not None:
            open_[2].append(line[indent:] if not line[:indent].strip() else line)
    return out


def without_code(text):
    """The same lines, those of fenced and indented blocks empty, and inline code shortened to `x`."""
    lines, mark = [], None
    for line in text.split("\n"):
        fence = FENCE.match(line)
        if mark is None and fence:
            mark = fence["mark"]
            lines.append("")
        elif mark is not None:
            mark = None if line.strip() == mark else mark
            lines.append("")
        else:
            lines.append(line)
    return re.sub(r"`[^`]*`", lambda match: "`x`" + "\n" * match.group().count("\n"), "\n".join(lines))


def links(text):
    """[(line's number, target)] of links and pictures."""
    plain = without_code(text)
    found = [(plain[:match.start()].count("\n") + 1, match.group(1))
             for match in re.finditer(r"\]\(\s*<?([^)\s>]+)>?\s*(?:\"[^\"]*\")?\)", plain)]
    found += [(plain[:match.start()].count("\n") + 1, match.group(1))
              for match in re.finditer(r"(?m)^\[[^\]]+\]:\s*(\S+)", plain)]
    return found


def anchor(heading):
    """As GitHub and GitLab make it, and the site."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def headings(text):
    mark, out = None, []
    for line in text.split("\n"):
        fence = FENCE.match(line)
        if fence and mark is None:
            mark = fence["mark"]
        elif mark is not None and line.strip() == mark:
            mark = None
        elif mark is None and re.match(r"#+ ", line):
            out.append(re.sub(r"^#+ +", "", line).strip())
    return out


def anchors(text):
    seen, out = {}, set()
    for heading in headings(text):
        one = anchor(heading)
        count = seen.get(one, 0)
        seen[one] = count + 1
        out.add(f"{one}-{count}" if count else one)
    return out


def sentences(text):
    """[(line's number, sentence)] of running text and lists; tables, headings and code are none."""
    plain = re.sub(r"<!--.*?-->", lambda match: "\n" * match.group().count("\n"), without_code(text), flags=re.S)
    out, paragraph, begin = [], [], 0

    def end():
        joined = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph))
        for part in re.split(r"(?<=[.!?])[\"')*]*\s+(?=[\"'(*`\[A-Z]|slurm|root |munge|kube)", joined):
            if part.strip():
                out.append((begin, part.strip()))
        paragraph.clear()

    for number, line in enumerate(plain.split("\n"), 1):
        text_ = line.strip()
        if re.match(r"([-*+]|\d+\.) ", text_) or not text_ or text_.startswith(("#", "|", "![")):
            end()
        if text_ and not text_.startswith(("#", "|", "![")) and not line.startswith("    "):
            begin = begin if paragraph else number
            paragraph.append(re.sub(r"^([-*+]|\d+\.) +", "", text_))
    end()
    return out
