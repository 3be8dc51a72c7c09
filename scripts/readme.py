#!/usr/bin/env python3
"""Puts the table of settings that `slurmlet config-table` prints into README.md, or with --check
fails if it is not the one that stands there."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN = "<!-- settings: begin (checked against `slurmlet config-table` by a test) -->\n"
END = "<!-- settings: end -->"


def main():
    readme = ROOT / "README.md"
    text = readme.read_text()
    table = subprocess.run([ROOT / "build/release/slurmlet", "config-table"], check=True,
                           capture_output=True, text=True).stdout
    head, rest = text.split(BEGIN)
    fresh = head + BEGIN + table + END + rest.split(END, 1)[1]
    if "--check" in sys.argv:
        if fresh != text:
            sys.exit("README.md: the table of settings is not current; run scripts/readme.py")
        return
    readme.write_text(fresh)


if __name__ == "__main__":
    main()
