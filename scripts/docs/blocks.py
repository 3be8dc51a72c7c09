#!/usr/bin/python3
"""The shell blocks of the user pages: which tests run them, and why the others are not run.

A comment before a block, as indented as the block, says it:

  <!-- run: cluster [KEY=VALUE…] [exit=N] -->    against the real control plane, beside a real Slurm
                                                 (test/system/test_documents.py)
  <!-- run: node [KEY=VALUE…] [exit=N] -->       on a booted machine (test/machine/test_machine_documents.py)
  <!-- not run: WHY -->

The blocks of a page run in their order, each by a bash of its own with -e. KEY in the block becomes VALUE; a VALUE with $
before it is the test's. Of a block with "$ " these lines are the commands, and the others what they print.

scripts/docs/blocks.py lists all."""
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import markdown

RUN = re.compile(r"<!-- run: (?P<where>cluster|node)(?P<values>(?: [\w./-]+=[^\s]+)*) -->")
NOT_RUN = re.compile(r"<!-- not run: (?P<why>\S.*) -->")
SHELL = ("sh", "shell", "bash", "console")
# What begins a block without a language that is one of a shell.
COMMANDS = re.compile(r"(\$ |\./dev|kubectl|kubeadm|slurmlet|scontrol|sacctmgr|systemctl|apt|dnf|install |tar |helm|sed )")


@dataclass
class Block:
    page: Path
    line: int
    text: str
    where: str = ""  # "cluster", "node"; "" = not run
    why: str = ""  # it is not run
    exit_code: int = 0
    values: dict = field(default_factory=dict)

    @property
    def name(self):
        return f"{markdown.name(self.page)}:{self.line}"

    def script(self, known):
        """The commands, with the values of the page; `known` are the test's: {"$NODE": …}, and KEY for all blocks."""
        lines, more = [], False
        shows = any(line.startswith("$ ") for line in self.text.split("\n"))
        for line in self.text.split("\n"):
            if not shows or more or line.startswith("$ "):
                lines.append(line if more or not shows else line[2:])
                more = line.rstrip().endswith("\\")
        text = "\n".join(lines)
        plain = {key: value for key, value in known.items() if not key.startswith("$")}
        for key, value in {**plain, **self.values}.items():
            text = re.sub(rf"(?<![\w.-]){re.escape(key)}(?![\w-])", lambda _, new=known.get(value, value): str(new), text)
        return text


def is_shell(language, lines):
    first = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    return language in SHELL or (not language and bool(COMMANDS.match(first)))


def of_page(page):
    text = page.read_text()
    above = text.split("\n")
    out = []
    for number, language, lines in markdown.blocks(text):
        comment = above[number - 2].strip() if number > 1 else ""
        run = RUN.fullmatch(comment)
        if not run and not is_shell(language, lines):
            continue
        block = Block(page, number, "\n".join(lines))
        if run:
            block.where = run["where"]
            block.values = dict(pair.split("=", 1) for pair in run["values"].split())
            block.exit_code = int(block.values.pop("exit", 0))
        elif why := NOT_RUN.fullmatch(comment):
            block.why = why["why"]
        out.append(block)
    return out


def every():
    return [block for page in markdown.pages() if markdown.for_users(page) and not markdown.made(page)
            and markdown.name(page) != "CHANGELOG.md" for block in of_page(page)]


def main():
    found = every()
    for block in found:
        first = next(line for line in block.text.split("\n") if line.strip())
        print(f"{block.name}: {block.where or 'NOT RUN'}: {block.why or first[:90]}")
    print(f"{len(found)} shell blocks: {sum(block.where == 'cluster' for block in found)} run against the control plane, "
          f"{sum(block.where == 'node' for block in found)} on a machine, {sum(bool(block.why) for block in found)} say why not")
    sys.exit(not all(block.where or block.why for block in found))


if __name__ == "__main__":
    main()
