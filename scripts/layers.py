#!/usr/bin/env python3
"""Checks that the rooms under src/ only use what docs/architecture.md lets them use.

The table in that document is the rule; this script reads it, so there is one place to change.
It fails on:
  - a room without a row, or a row without a room;
  - #include "ROOM/..." along an edge that the table does not allow;
  - an edge in CMakeLists.txt that the table does not allow;
  - a third-party header outside the room that owns it;
  - getenv() outside the rooms that may read the environment;
  - a source file of more than 400 lines.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"

# Header pattern -> the only room that may include it.
OWNED_HEADERS = {
    r"curl/": "http",
    r"openssl/": "tls",
    r"httplib\.h": "podapi",
    r"yaml\.h": "yaml",
    r"yaml-cpp/": "nobody",
    r"CLI/": "config",
    r"spdlog/": "base",
    r"sys/inotify\.h": "base",
}
MAY_READ_ENVIRONMENT = {"config", "base", "service", "slurm"}  # base: JOURNAL_STREAM, slurm: PATH
MAX_LINES = 400


def allowed_edges():
    """{room: set of rooms} from the table whose header is '| room | owns | may depend on |'."""
    edges = {}
    for line in (ROOT / "docs/architecture.md").read_text().splitlines():
        match = re.fullmatch(r"\| `src/(\w+)/` \|[^|]*\|([^|]*)\|", line.strip())
        if match:
            edges[match[1]] = set(re.findall(r"\w+", match[2]))
    return edges


def check_sources(edges, problems):
    for path in sorted(SRC.rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        room = path.relative_to(SRC).parts[0]
        name = path.relative_to(ROOT)
        lines = path.read_text().splitlines()
        if len(lines) > MAX_LINES:
            problems.append(f"{name}: {len(lines)} lines, more than {MAX_LINES}")
        for number, line in enumerate(lines, 1):
            where = f"{name}:{number}"
            include = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if include and include[1] == '"':
                target = include[2].split("/")[0]
                if target != room and target not in edges.get(room, set()):
                    problems.append(f"{where}: {room} may not use {target} ({include[2]})")
            if include:
                for pattern, owner in OWNED_HEADERS.items():
                    if re.match(pattern, include[2]) and room != owner:
                        problems.append(f"{where}: {include[2]} belongs to src/{owner}/")
            if re.search(r"\bgetenv\s*\(", line) and room not in MAY_READ_ENVIRONMENT:
                problems.append(f"{where}: only {sorted(MAY_READ_ENVIRONMENT)} read the environment")


def check_cmake(edges, problems):
    text = (ROOT / "CMakeLists.txt").read_text()
    for call in re.finditer(r"slurmlet_room\((\w+)([^)]*)\)", text):
        depends = re.search(r"DEPENDS((?:\s+\w+)+?)(?:\s+LIBRARIES|\s*$)", call[2])
        for target in (depends[1].split() if depends else []):
            if target not in edges.get(call[1], set()):
                problems.append(f"CMakeLists.txt: {call[1]} may not link {target}")


def main():
    edges = allowed_edges()
    problems = []
    rooms = {p.name for p in SRC.iterdir() if p.is_dir()}
    for room in sorted(rooms ^ set(edges)):
        problems.append(f"src/{room}/ and the table in docs/architecture.md do not agree")
    check_sources(edges, problems)
    check_cmake(edges, problems)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"layers: {len(rooms)} rooms, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
