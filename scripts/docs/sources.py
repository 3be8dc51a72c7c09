"""What the sources say: string literals of C++ and the tables that hold them. Reads, and imports nothing of the
build, so that a page can be compared with the code without a compiler."""
import re

from markdown import ROOT

SOURCES = ROOT / "src"

TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|(?P<string>"(?:[^"\\\n]|\\.)*")|\'(?:[^\'\\]|\\.)+\'|(?P<word>[A-Za-z_][\w:]*)|(?P<sign>[^\s\w])'
    r'|\d[\w.\']*', re.S)
OPEN = ("sign", "{")
ESCAPES = {"n": "\n", "t": "\t"}


def unquoted(text):
    return re.sub(r"\\(.)", lambda match: ESCAPES.get(match.group(1), match.group(1)), text[1:-1])


def tokens(text):
    """[(kind, value)] with kind string, word or sign. Neighbouring strings are one, as for the compiler."""
    out = []
    for match in TOKEN.finditer(text):
        kind = match.lastgroup
        if kind is None:
            continue
        value = unquoted(match.group()) if kind == "string" else match.group()
        if kind == "string" and out and out[-1][0] == "string":
            out[-1] = ("string", out[-1][1] + value)
        else:
            out.append((kind, value))
    return out


def without_includes(path):
    return re.sub(r"(?m)^#include.*$", "", path.read_text())


def tokens_of(path):
    return tokens(without_includes(SOURCES / path))


def group(all_tokens, start):
    """The bracket at `start` and the tokens up to the one that closes it, which is left out."""
    depth, out = 0, []
    for kind, value in all_tokens[start:]:
        if kind == "sign" and value in "({[":
            depth += 1
        elif kind == "sign" and value in ")}]":
            depth -= 1
            if depth == 0:
                return out
        out.append((kind, value))
    raise ValueError("a bracket that is never closed")


def strings(some):
    return [value for kind, value in some if kind == "string"]


def find(all_tokens, word):
    """Positions of `word`."""
    return [i for i, token in enumerate(all_tokens) if token == ("word", word)]


def rows(path, table):
    """The rows {…} of a table of constants (`table[] = {…}`, `array table{{…}}`, `table = to_array({…})`)."""
    text = without_includes(SOURCES / path)
    begin = re.search(rf"\b{table}(\[\])?(\s*=\s*(std::to_array<\w+>\()?)?\s*\{{", text)
    inner = group(tokens(text[begin.end() - 1:]), 0)[1:]
    if inner[:2] == [OPEN, OPEN]:
        inner = group(inner, 0)[1:]
    out = []
    while inner:
        if inner[0] == OPEN:
            out.append(group(inner, 0)[1:])
            inner = inner[len(out[-1]) + 2:]
        else:
            inner = inner[1:]
    return out


def camel_case(word):
    """NOT_RESPONDING → NotResponding, as base's camel_case()."""
    return "".join(part.capitalize() for part in word.split("_"))


def constants(path):
    """{constant's name: text} of one file."""
    return dict(re.findall(r'constexpr char (k\w+)\[\] =\s*"([^"]*)"', (SOURCES / path).read_text()))


# -- Events ----------------------------------------------------------------------


def event_reasons():
    """{reason: "Warning" | "Normal" | None (both, or where it is not plain)} of all Events."""
    found = {}
    for path in sorted(SOURCES.rglob("*.cpp")) + sorted(SOURCES.rglob("*.h")):
        text = without_includes(path)
        if "EventReason" in text:
            for name, warning in re.findall(r'\b\w+\{"(\w+)", (true|false)\}', text):
                found[name] = "Warning" if warning == "true" else "Normal"
        every = tokens(text)
        for i in find(every, "emit") + find(every, "events_.emit"):
            if i + 1 < len(every) and every[i + 1] == ("sign", "("):
                arguments = group(every, i + 1)[1:]
                if arguments and arguments[0] == OPEN:  # the object
                    arguments = arguments[len(group(arguments, 0)) + 1:]
                for reason in strings(arguments):
                    if re.fullmatch(r"[A-Z][a-z]\w+", reason):
                        found.setdefault(reason, None)
    words = constants("node/vocabulary.h")
    for row in rows("node/node_events.cpp", "kRules"):
        texts = strings(row)
        bad, good = texts[-2:]
        if bad:
            found[bad] = "Warning"
        else:
            for reason in ("SlurmdNotRunning", "SlurmdStopped"):
                found[reason] = "Warning"
        found[good] = "Normal"
    text = (SOURCES / "node/node_events.cpp").read_text()
    for warning, reason in re.findall(r'NodeEvent\{(true|false), "(\w+)"', text):
        found[reason] = "Warning" if warning == "true" else "Normal"
    for reason in re.findall(r'return "(\w+)";', text):
        found[reason] = "Warning"
    found[constants("sync/event_sink.h")["kPodRejected"]] = "Warning"
    found[words["kPodRejectedReason"]] = "Warning"
    return found


# -- metrics ---------------------------------------------------------------------


def metrics():
    """{name: (type, help, [label names that stand beside it])}, in the order of the sources."""
    kinds = {"counter": "counter", "gauge": "gauge", "of_kinds": "gauge", "add_size": "gauge"}
    found, old = {}, {}
    for path in ("status/metrics.cpp", "podapi/node_usage.cpp", "operator/operator_pages.cpp"):
        every = tokens_of(path)
        for i, (kind, word) in enumerate(every):
            if kind != "word" or word not in {*kinds, "add"} or i + 2 >= len(every) or every[i + 1] != ("sign", "("):
                continue
            arguments = group(every, i + 1)[1:]
            if word == "add" and arguments and arguments[0][0] == "word" and arguments[0][1] in kinds:
                inner = group(arguments, 1)[1:]
                after = strings(arguments[len(inner) + 3:])
                if after:
                    old[after[0]] = inner[0][1]
                continue
            if len(arguments) < 3 or arguments[0][0] != "string" or arguments[2][0] != "string":
                continue
            labels = [arguments[j + 2][1] for j in find(arguments, "labelled")
                      if arguments[j + 2][0] == "string"]
            sort = kinds.get(word) or ("counter" if ("word", "MetricType::kCounter") in arguments else "gauge")
            if word == "of_kinds":
                labels = ["kind"]
            found[arguments[0][1]] = (sort, arguments[2][1], sorted(set(labels)))
        found.update(prefixed_metrics(every, kinds))
    return found, old


def prefixed_metrics(every, kinds):
    """Of `gauge(std::string{"PREFIX_"} + name, help, …` and the rows {"name", "help", …} above it."""
    out = {}
    for i, (_, word) in enumerate(every):
        beginning = [value for _, value in every[i + 1:i + 8]]
        if word in kinds and beginning[:3] == ["(", "std::string", "{"] and beginning[4:] == ["}", "+", "name"]:
            for j in range(i):
                if every[j] == OPEN and [kind for kind, _ in every[j + 1:j + 4]] == ["string", "sign", "string"]:
                    out[beginning[3] + every[j + 1][1]] = (kinds[word], every[j + 3][1], [])
    return out
