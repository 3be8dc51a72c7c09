"""The checks of ./dev docs can fail: each is shown what it has to find."""
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/docs"))
import browser  # noqa: E402
import links  # noqa: E402
import markdown  # noqa: E402
import prose  # noqa: E402
import site_pages  # noqa: E402


# -- links -----------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path, monkeypatch):
    for module in (markdown, links):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(markdown, "pages", lambda: sorted(tmp_path.rglob("*.md")))
    return tmp_path


def test_links_that_lead_nowhere_are_found(repository):
    (repository / "a.md").write_text("# A page\n\n[x](b.md), [y](c.md#one-two), [z](c.md#three), [w](../out.md)\n\n"
                                     "`[code](none.md)` [site](https://example.com)\n\n```\n[block](none.md)\n```\n")
    (repository / "c.md").write_text("# One, two\n")
    (repository.parent / "out.md").write_text("")
    assert links.problems() == ["a.md:3: b.md: no such file", "a.md:3: c.md#three: no such heading",
                                "a.md:3: ../out.md: outside of the repository"]


def test_anchors_are_those_of_github():
    text = "# What `kubectl` shows: 1 & 2\n## Twice\n## Twice\n```\n# not this\n```\n## A [link](x.md)\n"
    assert markdown.anchors(text) == {"what-kubectl-shows-1--2", "twice", "twice-1", "a-link"}


# -- words and sentences ---------------------------------------------------------


def test_words_to_avoid_are_found_but_not_in_code(tmp_path):
    page = tmp_path / "a.md"
    page.write_text("Nobody asks.\n\n`nobody` [text](nobody.md)\n\n```\nnobody\n```\n")
    avoided = prose.words({"avoid": {"nobody": "name who", "asks?": "query"}})
    assert prose.found_words(page, avoided) == [(1, "Nobody", "name who"), (1, "asks", "query")]


def test_long_sentences_are_counted_one_by_one(tmp_path):
    page = tmp_path / "a.md"
    page.write_text("# " + "heading " * 40 + "\n\n" + "word " * 31 + "end. Short one. `x` " + "more " * 29 + "end.\n\n"
                    "- " + "item " * 20 + "\n- " + "item " * 20 + "\n\n| " + "cell " * 40 + "|\n")
    assert [number for number, _ in prose.long_sentences(page)] == [3, 3]


# -- the copies for the site -----------------------------------------------------


def test_what_stands_in_a_list_is_indented_by_four():
    text = "Text\n- one\n  more\n\n  ```sh\n  $ x\n    y\n  ```\n- two\n1. first\n\n   more\n"
    assert site_pages.indented(text) == ("Text\n\n-   one\n    more\n\n    ```sh\n    $ x\n      y\n    ```\n\n-   two\n\n"
                                         "1.  first\n\n    more\n")


def test_links_to_directories_lead_to_their_readme_or_nowhere(tmp_path):
    (tmp_path / "with").mkdir()
    (tmp_path / "with/README.md").touch()
    (tmp_path / "without").mkdir()
    text, files = site_pages.followed(tmp_path / "a.md", "[a](with#x) [b](without) [c](d.yaml) [e](https://f/)")
    assert text == "[a](with/README.md#x) b [c](d.yaml) [e](https://f/)"
    assert files == {tmp_path / "d.yaml"}


# -- the browser -----------------------------------------------------------------


def test_a_browser_finds_what_is_broken(tmp_path, monkeypatch):
    page = "<!doctype html><meta name=viewport content='width=device-width'><div class=md-content>{}</div>"
    for name, body in (("good", "<p>text"), ("picture", "<img src=none.svg>"), ("wide", "<p style='width:500px'>x")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text(page.format(body))
    monkeypatch.setattr(browser, "SITE", tmp_path)
    monkeypatch.setattr(browser, "SEARCHES", {})
    server, address = browser.served()
    chromium = browser.Browser()
    try:
        problems = browser.check(chromium, address)
    finally:
        chromium.close()
        server.shutdown()
    assert len(problems) == 2
    assert problems[0].startswith("picture: broken picture ") and problems[1].startswith("wide: 5")


def opening(page):
    """Its first text below the heading."""
    lines = [line for line in page.read_text().split("\n") if line.strip() and not line.startswith(("#", "<!--"))]
    return lines[0] if lines else ""


def test_pages_say_first_when_they_are_used():
    pages = [page for page in markdown.pages() if markdown.for_users(page)
             and markdown.name(page).startswith(("docs/", "deploy/", "packaging/"))]
    assert len(pages) > 30
    assert [markdown.name(page) for page in pages if not opening(page).startswith("Use this when")] == []


def test_readme_names_the_releases_that_the_tests_have():
    rows = dict(re.findall(r"(?m)^\| ([\w ,]+) \| (.*) \|$", (markdown.ROOT / "README.md").read_text().partition("## Tested with")[2]))
    dev, crds = ((markdown.ROOT / path).read_text() for path in ("dev", "test/lab/crds/fetch.sh"))
    [kubernetes] = re.findall(r"^OTHER_KUBERNETES=\((.*)\)", dev, re.M)
    [slurm] = re.findall(r"(?m)^OTHER_SLURMS = (.*)$", (markdown.ROOT / "test/system/conftest.py").read_text())
    for row, releases in (("Kubernetes", kubernetes.split()), ("Slurm", re.findall(r"[\d.]+", slurm)),
                          ("Cluster API", re.findall(r"^\t+cluster-api \S+ v(\d+\.\d+)", crds, re.M)),
                          ("CAPM3, Metal3", re.findall(r"^\t+metal3 \S+ v(\d+\.\d+)", crds, re.M))):
        assert releases and [one for one in releases if one not in rows[row]] == [], row
