#!/usr/bin/python3
"""Links of all Markdown pages, and those of alert rules: each leads to a file or directory of this repository and to a
heading that is there. Addresses of other sites are not looked up."""
import re
import sys

import markdown
from markdown import ROOT


def problems():
    out = []
    for page in markdown.pages():
        text = page.read_text()
        for number, link in markdown.links(text):
            path, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            target = (page.parent / path).resolve() if path else page
            where = f"{markdown.name(page)}:{number}: {link}"
            if not target.exists():
                out.append(f"{where}: no such file")
            elif not target.is_relative_to(ROOT):
                out.append(f"{where}: outside of the repository")
            elif anchor and target.is_file() and target.suffix == ".md" and anchor not in markdown.anchors(target.read_text()):
                out.append(f"{where}: no such heading")
            elif anchor and target.is_dir():
                out.append(f"{where}: a directory has no headings")
    return out


if __name__ == "__main__":
    found = problems()
    print("\n".join(found) or f"links of {len(markdown.pages())} pages lead somewhere")
    sys.exit(bool(found))
