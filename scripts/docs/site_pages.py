#!/usr/bin/python3
"""The site: copies the pages into build/docs/pages, as they lie in the repository, and builds build/docs/site.

Two things differ from how GitHub and GitLab show Markdown, and are adapted in the copies: what stands in a list is
indented by four, and a link to a directory without a README.md is its name."""
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

import markdown
from markdown import ROOT

HERE = Path(__file__).resolve().parent
BUILD = ROOT / "build/docs"
ITEM = re.compile(r"^( *)([-*+]|\d+[.)])( +)(?=\S)")


def indented(text):
    """Lists with four blanks for each level, and a blank line before what would else be taken for running text."""
    out, stack, fence = [], [], None  # stack: the columns in which the text of open items begins
    loose = False  # a blank line stands within the list
    for line in text.split("\n"):
        blank = not line.strip()
        width = len(line) - len(line.lstrip(" "))
        in_list = bool(stack)
        if fence is None and not blank:
            while stack and width < stack[-1]:
                stack.pop()
            loose = loose and (bool(stack) or bool(ITEM.match(line)))
        level = len(stack)
        if blank:
            out.append("")
            loose = loose or bool(stack)
            continue
        base = stack[-1] if stack else 0
        if fence is None and (item := ITEM.match(line)) and width - base < 4:
            if out and out[-1] and (loose or not (level or in_list)):
                out.append("")
            out.append(" " * 4 * level + item[2] + " " * max(1, 4 - len(item[2])) + line[item.end():])
            stack.append(item.end())
            continue
        out.append(" " * 4 * level + line[min(base, width):])
        mark = markdown.FENCE.match(line)
        if fence is None and mark:
            fence = mark["mark"]
        elif fence is not None and line.strip() == fence:
            fence = None
    return "\n".join(out)


def followed(page, text):
    """The text with links as the site can follow them, and the files that they lead to."""
    files = set()

    def link(match):
        label, path, anchor = match.group(1), match.group(2), match.group(3) or ""
        if re.match(r"[a-z]+:", path) or not path:
            return match.group()
        target = (page.parent / path).resolve()
        if target.is_dir():
            return f"[{label}]({path.rstrip('/')}/README.md{anchor})" if (target / "README.md").exists() else label
        files.add(target)
        return match.group()

    return re.sub(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]*)(#[^)\s]*)?\)", link, text), files


def nav(entries):
    """The entries, a pattern replaced by what it stands for."""
    out = []
    for entry in entries:
        [(title, target)] = entry.items()
        if isinstance(target, list):
            out.append({title: nav(target)})
        elif "*" in target:
            out.append({title: [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob(target))]})
        else:
            out.append(entry)
    return out


def names(entries):
    for entry in entries:
        for target in [entry] if isinstance(entry, str) else entry.values():
            if isinstance(target, str):
                yield target
            else:
                yield from names(target)


def stage():
    target = BUILD / "pages"
    shutil.rmtree(target, ignore_errors=True)
    entries = nav(yaml.safe_load((HERE / "nav.yml").read_text()))
    shown = [ROOT / name for name in names(entries)]
    every = [page for page in markdown.pages() if markdown.name(page).startswith(("docs/", "deploy/")) or "/" not in markdown.name(page)]
    forgotten = sorted(markdown.name(page) for page in every if page not in shown)
    if forgotten:
        sys.exit(f"{forgotten}: give each its place in scripts/docs/nav.yml")
    files = {HERE / "site.css"}
    for page in shown:
        text, more = followed(page, page.read_text())
        files |= more
        copy = target / page.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(indented(text))
    for file in files - set(shown):
        copy = target / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    configuration = (HERE / "mkdocs.yml").read_text() + yaml.safe_dump({"nav": entries}, allow_unicode=True, sort_keys=False)
    (BUILD / "mkdocs.yml").write_text(configuration.replace("../../build/docs/", ""))
    return len(shown)


def tools():
    """mkdocs, in an environment of its own."""
    environment, wanted = BUILD / "venv", (HERE / "requirements.txt").read_text()
    stamp = environment / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(environment, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        subprocess.run([str(environment / "bin/pip"), "install", "-q", "--disable-pip-version-check", "--no-deps", "-r",
                        str(HERE / "requirements.txt")], check=True)
        stamp.write_text(wanted)
    return environment / "bin/mkdocs"


def main():
    BUILD.mkdir(parents=True, exist_ok=True)
    mkdocs = tools()
    count = stage()
    done = subprocess.run([str(mkdocs), "build", "-q", "-f", str(BUILD / "mkdocs.yml")], capture_output=True, text=True,
                          env={"PATH": "/usr/bin:/bin", "NO_MKDOCS_2_WARNING": "1", "LC_ALL": "C.UTF-8"})
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    print(f"build/docs/site: {count} pages")


if __name__ == "__main__":
    main()
