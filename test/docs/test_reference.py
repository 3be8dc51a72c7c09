"""docs/reference is what the tables of the code, the YAML of deploy/ and the programs' --help say."""
import re
import sys
from xml.etree import ElementTree
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/docs"))
import markdown  # noqa: E402
import pictures  # noqa: E402
import reference  # noqa: E402
import runbooks  # noqa: E402
import sources  # noqa: E402

PAGES = {**reference.MADE_OF_FILES, **{name: make for name, (make, _) in reference.MADE_OF_HELP.items()}}


def page(name):
    return (reference.PAGES / f"{name}.md").read_text()


@pytest.mark.parametrize("name", sorted(PAGES))
def test_page_is_current(name):
    needed = reference.MADE_OF_HELP.get(name, (None, ()))[1]
    missing = [program for program in needed if not reference.program(program)]
    if missing:
        pytest.fail(f"build {missing} first (./dev build), or set SLURMLET_UNDER_TEST")
    assert page(name) == PAGES[name]().rstrip("\n") + "\n", "scripts/docs/reference.py writes it"


def test_there_is_no_other_page():
    assert {path.stem for path in reference.PAGES.glob("*.md")} == set(PAGES)


def test_each_alert_leads_to_its_heading():
    anchors = markdown.anchors(page("alerts"))
    for rule in reference.alert_rules():
        site, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert site + "#" == runbooks.SITE and anchor in anchors, rule["alert"]
    assert runbooks.with_urls(runbooks.RULES.read_text()) == runbooks.RULES.read_text(), "scripts/docs/runbooks.py writes it"


def test_metrics_of_the_operator_stand_under_it():
    _, _, of_usage = page("metrics").partition("## The node's usage")
    assert "node_cpu_usage_seconds_total" in of_usage and "slurmlet_operator_" not in of_usage


def test_pictures_are_current_and_well_formed():
    for name, draw in pictures.PICTURES.items():
        text = (pictures.IMAGES / f"{name}.svg").read_text()
        assert text == draw().svg(), "scripts/docs/pictures.py writes it"
        picture = ElementTree.fromstring(text)
        for each in picture.iter("{http://www.w3.org/2000/svg}rect"):
            right = float(each.get("x", 0)) + float(each.get("width"))
            assert right <= pictures.WIDTH, (name, each.attrib)


def headings(text):
    return set(re.findall(r"(?m)^#+ (\S.*)$", text))


def test_each_reason_of_a_condition_has_its_heading_or_row():
    text = page("conditions")
    for reason in reference.reasons():
        assert reason in headings(text) or f"`{reason}`" in text, reason
    for reason, *_ in reference.failures():
        assert reason in headings(text)


def test_each_event_has_its_heading():
    assert set(sources.event_reasons()) <= headings(page("events"))


def test_each_setting_of_the_examples_has_its_heading():
    config = (ROOT / "packaging/config.yaml").read_text()
    keys = {key.split(".")[-1] for key in headings(page("settings"))}
    shown = set(re.findall(r"(?m)^ *#([a-z]\w+):", config))
    assert len(shown) > 30 and shown <= keys


# -- the reader of C++ -----------------------------------------------------------


def test_neighbouring_strings_are_one():
    assert sources.strings(sources.tokens('f("a "\n  "b", "c\\"d"); // "not"')) == ["a b", 'c"d']


def test_a_name_without_a_meaning_is_an_error():
    with pytest.raises(reference.Missing, match="NoSuchEvent is in the code"):
        reference.meanings("events", [*sources.event_reasons(), "NoSuchEvent"])
    with pytest.raises(reference.Missing, match="Registered is in meanings.yaml, events, and not in the code"):
        reference.meanings("events", [name for name in sources.event_reasons() if name != "Registered"])


def test_metrics_of_a_table_have_their_prefix():
    every = sources.tokens('constexpr T kAll[] = {{"jobs", "Jobs that "\n "wait.", &P::jobs}, {"gpus", "GPUs.", &P::gpus}};\n'
                           'for (;;) { f(gauge(std::string{"x_"} + name, help, {})); }')
    assert sources.prefixed_metrics(every, {"gauge": "gauge"}) == {
        "x_jobs": ("gauge", "Jobs that wait.", []), "x_gpus": ("gauge", "GPUs.", [])}
