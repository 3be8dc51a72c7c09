#!/usr/bin/python3
"""Words and sentences of the Markdown pages.

  scripts/docs/prose.py             fails where a page has a word to avoid more often than prose.yaml allows it; says how
                                    many sentences of user pages are longer than 30 words
  scripts/docs/prose.py --long      lists those sentences
  scripts/docs/prose.py --allow     writes what the pages have now into prose.yaml: for fewer, never for more
"""
import re
import sys
from pathlib import Path

import yaml

import markdown

RULES = Path(__file__).with_name("prose.yaml")
MOST_WORDS = 30


def words(rules):
    return {re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE): better for pattern, better in rules["avoid"].items()}


def found_words(page, avoided):
    """[(line's number, word, what is better)]"""
    out = []
    plain = markdown.without_code(page.read_text())
    for number, line in enumerate(plain.split("\n"), 1):
        line = re.sub(r"\]\([^)]*\)", "]", line)
        for pattern, better in avoided.items():
            out += [(number, match.group(), better) for match in pattern.finditer(line)]
    return out


def long_sentences(page):
    return [(number, text) for number, text in markdown.sentences(page.read_text()) if len(text.split()) > MOST_WORDS]


def main():
    rules = yaml.safe_load(RULES.read_text())
    avoided, allowed = words(rules), rules["allowed"] or {}
    user_pages = [page for page in markdown.pages() if markdown.for_users(page) and markdown.name(page) != "CHANGELOG.md"]
    failed, now = False, {}
    for page in user_pages:
        found = found_words(page, avoided)
        name = markdown.name(page)
        if found:
            now[name] = len(found)
        if len(found) > allowed.get(name, 0):
            failed = True
            print(f"{name}: {len(found)} words to avoid, {allowed.get(name, 0)} allowed")
            print("".join(f"  {name}:{number}: \"{word}\": {better}\n" for number, word, better in found), end="")
    if "--allow" in sys.argv:
        fewer = {name: min(count, allowed.get(name, count)) for name, count in now.items()}
        head = RULES.read_text().split("\nallowed:")[0]
        RULES.write_text(f"{head}\nallowed:\n" + "".join(f"  {name}: {count}\n" for name, count in fewer.items()))
    long = {markdown.name(page): long_sentences(page) for page in user_pages}
    if "--long" in sys.argv:
        for name, some in long.items():
            for number, text in some:
                print(f"{name}:{number}: {len(text.split())} words: {text}")
    count = sum(map(len, long.values()))
    most = ", ".join(f"{name} {len(some)}" for name, some in sorted(long.items(), key=lambda item: -len(item[1]))[:5] if some)
    total = sum(len(markdown.sentences(page.read_text())) for page in user_pages)
    print(f"{len(user_pages)} user pages: {count} of {total} sentences over {MOST_WORDS} words (most: {most}); "
          f"{sum(now.values())} words to avoid")
    sys.exit(failed)


if __name__ == "__main__":
    main()
