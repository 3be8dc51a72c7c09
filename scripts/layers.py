#!/usr/bin/env python3
"""Checks the house: which component may use which, and how large things may be.

The table of components in docs/contributors/architecture.md is the rule; this script reads it, so there is one
place to change. A component with sub-folders has a row for each of them. It fails on:
  - a component without a row, or a row without a component;
  - #include "COMPONENT/..." along an edge that the table does not allow, and any circle;
  - an edge in CMakeLists.txt that the table does not allow;
  - a third-party header outside the component that owns it;
  - getenv() outside the components that may read the environment;
  - a file over 400 lines, a function (or what is within one) over 60, a folder over 45 files;
  - a picture in docs/contributors/architecture.md that is not what the includes say (--draw writes it).
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
DOCUMENT = ROOT / "docs/contributors/architecture.md"

# Header pattern -> the only component that may include it.
OWNED_HEADERS = {
    r"curl/": "http",
    r"openssl/": "tls",
    r"httplib\.h": "podapi",
    r"yaml\.h": "yaml",
    r"spdlog/": "base",
    r"sys/inotify\.h": "base",
}
# base: JOURNAL_STREAM; slurm/local: PATH; slurm/sources: SLURM_JWT.
MAY_READ_ENVIRONMENT = {"config", "base", "slurm/local", "slurm/sources"}
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_FILES = 45
PICTURE = re.compile(r"(<!-- picture: scripts/layers.py --draw -->\n```\n).*?(```\n<!-- end -->)", re.S)


def allowed_edges():
    """{component: set of components} from the rows "| `src/NAME/` | owns | may use |"."""
    edges = {}
    for line in DOCUMENT.read_text().splitlines():
        match = re.fullmatch(r"\| `src/([\w/]+)/` \|[^|]*\|([^|]*)\|", line.strip())
        if match:
            edges[match[1]] = set(re.findall(r"[\w/]+", match[2]))
    return edges


def sources():
    return sorted(p for p in SRC.rglob("*") if p.suffix in (".h", ".cpp"))


def component_of(path):
    return str(path.relative_to(SRC).parent)


def includes(path):
    """(line number, quoted?, name) of each #include."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield number, match[1] == '"', match[2]


def used_edges():
    edges = collections.defaultdict(set)
    for path in sources():
        component = component_of(path)
        edges[component] |= {str(pathlib.PurePosixPath(name).parent)
                             for _, quoted, name in includes(path) if quoted} - {component}
    return edges


def reachable(edges, start):
    seen, todo = set(), [start]
    while todo:
        for target in edges.get(todo.pop(), ()):
            if target not in seen:
                seen.add(target)
                todo.append(target)
    return seen


def check_includes(edges, problems):
    for path in sources():
        component = component_of(path)
        for number, quoted, name in includes(path):
            where = f"{path.relative_to(ROOT)}:{number}"
            target = str(pathlib.PurePosixPath(name).parent)
            if quoted and target != component and target not in edges.get(component, set()):
                problems.append(f"{where}: {component} may not use {target} ({name})")
            for pattern, owner in OWNED_HEADERS.items():
                if re.match(pattern, name) and component.split("/")[0] != owner:
                    problems.append(f"{where}: {name} belongs to src/{owner}/")


def check_circles(edges, problems):
    whole = collections.defaultdict(set)  # a component with its sub-folders
    for component, targets in edges.items():
        top = component.split("/")[0]
        whole[top] |= {target.split("/")[0] for target in targets} - {top}
    for graph in (edges, whole):
        for component in sorted(graph):
            if component in reachable(graph, component):
                problems.append(f"src/{component}/ uses itself through others")


def blocks(lines):
    """(first line, lines) of each function, lambda and loop within others or a class."""
    opened = []
    for number, line in enumerate(lines, 1):
        indent = len(line) - len(line.lstrip())
        if indent and re.fullmatch(r"}\)*[;,]?\)*;?", line.strip()):
            start = None
            while opened and opened[-1][0] >= indent:  # a signature may end further in
                start = opened.pop()[1]
            if start:
                yield start, number - start + 1
        elif indent and re.search(r"[)\]].*\{$", line):
            opened.append((indent, number))


def check_sizes(problems):
    for path in sources():
        name = path.relative_to(ROOT)
        lines = path.read_text().splitlines()
        if len(lines) > MAX_FILE_LINES:
            problems.append(f"{name}: {len(lines)} lines, more than {MAX_FILE_LINES}")
        start = None
        for number, line in enumerate(lines, 1):
            if start is None and re.match(r"[\w~][^=]*\(", line) and not line.endswith(";"):
                start = number
            elif line == "}" and start:
                if number - start + 1 > MAX_FUNCTION_LINES:
                    problems.append(f"{name}:{start}: a function of {number - start + 1} lines, "
                                    f"more than {MAX_FUNCTION_LINES}")
                start = None
            elif line[:1] not in (" ", "") and line.endswith(";"):
                start = None
        for first, length in blocks(lines):
            if length > MAX_FUNCTION_LINES:
                problems.append(f"{name}:{first}: a block of {length} lines, "
                                f"more than {MAX_FUNCTION_LINES}")
    folders = collections.Counter(p.parent for p in sources())
    for folder, count in sorted(folders.items()):
        if count > MAX_FILES:
            problems.append(f"{folder.relative_to(ROOT)}/: {count} files, more than {MAX_FILES}")


def check_environment(problems):
    for path in sources():
        if component_of(path) in MAY_READ_ENVIRONMENT:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(r"\bgetenv\s*\(", line):
                problems.append(f"{path.relative_to(ROOT)}:{number}: only "
                                f"{sorted(MAY_READ_ENVIRONMENT)} read the environment")


def check_cmake(edges, problems):
    whole = collections.defaultdict(set)  # by library: a component with its sub-folders
    for component, targets in edges.items():
        whole[component.split("/")[0]] |= {t.split("/")[0] for t in targets}
    text = (ROOT / "CMakeLists.txt").read_text()
    for call in re.finditer(r"slurmlet_component\((\w+)([^)]*)\)", text):
        depends = re.search(r"DEPENDS((?:\s+\w+)+?)(?:\s+LIBRARIES|\s*$)", call[2])
        for target in (depends[1].split() if depends else []):
            if target not in whole[call[1]]:
                problems.append(f"CMakeLists.txt: {call[1]} may not link {target}")


def picture(edges):
    """The components floor by floor, the highest first; each names what it uses on the floors
    below, less what it uses through another of them."""
    floor = {}

    def floor_of(component):
        if component not in floor:
            floor[component] = 1 + max((floor_of(t) for t in edges[component]), default=-1)
        return floor[component]

    components = sorted({component_of(path) for path in sources()})
    out = []
    for level in range(max(map(floor_of, components)), -1, -1):
        for component in (c for c in components if floor[c] == level):
            uses = edges[component]
            direct = sorted(t for t in uses if not any(t in reachable(edges, o) for o in uses - {t}))
            arrow = f"-> {', '.join(direct)}" if direct else ""
            out.append(f"{level}  {component:15} {arrow}".rstrip())
    return "\n".join(out) + "\n"


def check_picture(edges, problems, draw):
    text = DOCUMENT.read_text()
    match = PICTURE.search(text)
    if not match:
        problems.append("docs/contributors/architecture.md: the picture's marks are gone")
        return
    new = text[:match.end(1)] + picture(edges) + text[match.start(2):]
    if draw:
        DOCUMENT.write_text(new)
    elif new != text:
        problems.append("docs/contributors/architecture.md: the picture is not what the includes say; "
                        "draw it anew with scripts/layers.py --draw")


def main():
    edges = allowed_edges()
    used = used_edges()
    problems = []
    components = {component_of(p) for p in sources()}
    for component in sorted(components ^ set(edges)):
        problems.append(f"src/{component}/ and the table in docs/contributors/architecture.md do not agree")
    check_includes(edges, problems)
    check_circles(used, problems)
    check_sizes(problems)
    check_environment(problems)
    check_cmake(edges, problems)
    if not any("uses itself" in p for p in problems):
        check_picture(used, problems, "--draw" in sys.argv)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"layers: {len(components)} components, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
