"""What ships for the cluster: alert rules, scrape configuration and dashboard, by Prometheus' own
judgement and against the list of metrics that slurmlet has."""
import json
import pathlib
import re
import sys

import pytest
import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lab"))
from harness.api import repository  # noqa: E402
from harness.metric_names import METRICS, OPERATOR_METRICS, SCALING_METRICS  # noqa: E402
from harness.prometheus import Prometheus, promtool  # noqa: E402

DEPLOY = repository() / "deploy"
RULES = DEPLOY / "prometheus/slurmlet.rules.yaml"
RULE_TESTS = DEPLOY / "prometheus/slurmlet.rules.test.yaml"
RULE_TESTS_OF_DAYS = DEPLOY / "prometheus/slurmlet.rules.days.test.yaml"
TARGET_LABELS = {"job", "instance", "node", "slurm_cluster"}  # of the scrape, not of slurmlet
OF_PROMETHEUS = {"up": set()}
ALL_METRICS = {**METRICS, **OPERATOR_METRICS, **SCALING_METRICS}
FUNCTIONS = {"avg", "changes", "count", "increase", "max", "min", "min_over_time", "rate", "sort", "sum", "time", "topk"}
KEYWORDS = {"and", "by", "group_left", "or", "unless"}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """One that has loaded the rules and scrapes nothing."""
    with Prometheus(tmp_path_factory.mktemp("prometheus"), target="", jobs=(),
                    rules=[RULES]) as running:
        yield running


def dashboard():
    return json.loads((DEPLOY / "grafana/slurmlet.json").read_text())


def dashboard_expressions():
    """[(panel's title, expression as Grafana would send it)]"""
    found = []
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", []):
            text = target["expr"].replace("$__rate_interval", "5m")
            found.append((panel["title"], text.replace("$job", "slurmlet").replace("$node", ".*")))
    return found


def alerts(prometheus):
    groups = prometheus.api("rules")["groups"]
    return [(rule["name"], rule) for group in groups for rule in group["rules"]]


def unknown_names(expression):
    """What an expression names that slurmlet does not have: metrics, and labels of a metric."""
    wrong = []
    text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', expression)
    labels = set()
    for names in re.findall(r"\b(?:by|on|without)\s*\(([^)]*)\)", text):
        labels |= set(re.findall(r"\w+", names))
    text = re.sub(r"\b(?:by|on|without)\s*\([^)]*\)|\boffset \w+", " ", text)
    known = {**ALL_METRICS, **OF_PROMETHEUS}
    used = set()
    for name, matchers in re.findall(r"([a-zA-Z_:][\w:]*)\s*\{([^}]*)\}", text):
        own = known.get(name, set()) | TARGET_LABELS
        wrong += [f"{name}{{{label}}}" for label in re.findall(r"(\w+)\s*[=!]", matchers)
                  if label not in own]
    text = re.sub(r"\[[^\]]*\]", " ", re.sub(r"\{[^}]*\}", " ", text))
    for name in re.findall(r"[a-zA-Z_:][\w:]*", text):
        if name in known:
            used.add(name)
        elif name not in FUNCTIONS | KEYWORDS:
            wrong.append(name)
    allowed = TARGET_LABELS.union(*(known[name] for name in used)) if used else TARGET_LABELS
    return wrong + [f"by ({label})" for label in labels - allowed]


def test_the_check_of_names_finds_strangers():
    assert unknown_names('sum by (cause) (rate(slurmlet_slurmctld_failures_total[5m]))') == []
    assert unknown_names("slurmlet_slurmd_down == 0") == ["slurmlet_slurmd_down"]
    assert unknown_names('slurmlet_slurmd_up{state="up"}') == ["slurmlet_slurmd_up{state}"]
    assert unknown_names("sum by (color) (slurmlet_slurmd_up)") == ["by (color)"]


# -- alerts ------------------------------------------------------------------------------


def test_rules_are_valid():
    promtool("check", "rules", "--lint-fatal", RULES)


def test_rules_do_what_their_tests_say():
    promtool("test", "rules", RULE_TESTS, RULE_TESTS_OF_DAYS)


def test_a_wrong_rule_fails_its_tests(tmp_path):
    """promtool's tests can fail: those of one alert against rules with its number changed."""
    (tmp_path / RULES.name).write_text(RULES.read_text())
    tests = yaml.safe_load(RULE_TESTS.read_text())
    tests["tests"] = [one for one in tests["tests"] if "SlurmletLeaseOld" in json.dumps(one)]
    (tmp_path / RULE_TESTS.name).write_text(json.dumps(tests))
    promtool("test", "rules", tmp_path / RULE_TESTS.name)
    changed = RULES.read_text().replace("slurmlet_lease_age_seconds > 30",
                                        "slurmlet_lease_age_seconds > 30000")
    (tmp_path / RULES.name).write_text(changed)
    with pytest.raises(AssertionError, match="SlurmletLeaseOld"):
        promtool("test", "rules", tmp_path / RULE_TESTS.name)


def test_every_alert_has_a_test_and_says_what_to_do(prometheus):
    tests = RULE_TESTS.read_text() + RULE_TESTS_OF_DAYS.read_text()
    found = alerts(prometheus)
    assert found
    for name, rule in found:
        assert name in tests, name
        assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}, name
        if "slurmlet_operator" not in rule["query"] and "slurmlet-operator" not in rule["query"]:
            assert "$labels.node" in rule["annotations"]["summary"], name
        assert rule["labels"]["severity"] in ("critical", "warning", "info"), name


def test_the_page_lists_the_alerts_by_severity(prometheus):
    listed = {(name, severity) for severity, names in re.findall(
        r"^\| (critical|warning|info) \| (.*) \|$", (DEPLOY.parent / "docs/how-to/alerting.md").read_text(), re.M)
        for name in names.split(", ")}
    assert listed == {(name, rule["labels"]["severity"]) for name, rule in alerts(prometheus)}


def test_alerts_use_metrics_that_exist(prometheus):
    assert {name: unknown_names(rule["query"]) for name, rule in alerts(prometheus)
            if unknown_names(rule["query"])} == {}


# -- scrape configuration -------------------------------------------------------------------


NODE_META = {"__meta_kubernetes_node_name": "nid000001",
             "__meta_kubernetes_node_label_slurmlet_io_slurm_cluster": "alps",
             "__meta_kubernetes_node_labelpresent_slurmlet_io_version": "true"}


@pytest.fixture(name="scrapes")
def scrape_configuration(tmp_path):
    """The configuration with two nodes in place of what Kubernetes' service discovery would find,
    which Debian's Prometheus is built without; its rules lie beside it."""
    other = {"__meta_kubernetes_node_name": "worker-1"}
    nodes = [{"targets": ["192.0.2.7:10250"], "labels": NODE_META},
             {"targets": ["192.0.2.8:10250"], "labels": other}]
    text, count = re.subn(r"kubernetes_sd_configs:\n +- role: node.*",
                          "static_configs: " + json.dumps(nodes),
                          (DEPLOY / "prometheus/scrape-config.yaml").read_text())
    assert count == 2
    (tmp_path / RULES.name).write_text(RULES.read_text())
    path = tmp_path / "prometheus.yaml"
    path.write_text(text)
    return path


def test_scrape_configuration_is_valid(scrapes):
    promtool("check", "config", "--syntax-only", scrapes)


@pytest.mark.parametrize("job", ["slurmlet", "slurmlet-resource"])
def test_scraped_are_the_nodes_of_slurmlet_under_their_names(scrapes, job):
    found = json.loads(promtool("check", "service-discovery", "--timeout=1s", scrapes, job))
    kept = {one["discoveredLabels"]["__address__"]: one["labels"] for one in found
            if one.get("labels")}
    assert list(kept) == ["192.0.2.7:10250"]
    labels = kept["192.0.2.7:10250"]
    assert (labels["job"], labels["node"], labels["slurm_cluster"]) == (job, "nid000001", "alps")
    assert labels["instance"] == "192.0.2.7:10250"


# -- autoscaling by other means ------------------------------------------------------------


def autoscaling_expressions():
    """Of the examples for KEDA and for prometheus-adapter, as each would send it."""
    [scaled] = yaml.safe_load_all((DEPLOY / "autoscaling/keda/scaledobject.yaml").read_text())
    adapter = yaml.safe_load((DEPLOY / "autoscaling/hpa/adapter-values.yaml").read_text())
    return [one["metadata"]["query"] for one in scaled["spec"]["triggers"]] + [
        one["metricsQuery"].replace("<<.LabelMatchers>>", 'job="slurmlet-operator"') for one in adapter["rules"]["external"]]


def test_autoscaling_examples_use_metrics_that_exist(prometheus):
    for expression in autoscaling_expressions():
        assert unknown_names(expression) == []
        prometheus.api("format_query", query=expression)
    hpa = yaml.safe_load((DEPLOY / "autoscaling/hpa/hpa.yaml").read_text())
    adapter = yaml.safe_load((DEPLOY / "autoscaling/hpa/adapter-values.yaml").read_text())
    assert [one["external"]["metric"]["name"] for one in hpa["spec"]["metrics"]] == \
        [one["name"]["as"] for one in adapter["rules"]["external"]]


# -- dashboard ------------------------------------------------------------------------------


def test_dashboard_expressions_are_promql(prometheus):
    for title, expression in dashboard_expressions():
        try:
            prometheus.api("format_query", query=expression)
        except ValueError as error:
            pytest.fail(f"{title}: {expression}: {error}")


def test_dashboard_uses_metrics_that_exist():
    found = dashboard_expressions()
    assert len(found) > 20
    assert {title: unknown_names(expression) for title, expression in found
            if unknown_names(expression)} == {}


def test_dashboard_shows_every_metric():
    """But those that only alerts need, or that say little on a screen."""
    shown = " ".join(expression for _, expression in dashboard_expressions())
    left_out = {"slurmlet_node_registered", "slurmlet_node_gone_with_machine",
                "slurmlet_pods_finished_total", "slurmlet_pod_watch_up",
                "slurmlet_operator_dumps_unchanged_total",
                "slurmlet_endpoint_listening", "slurmlet_endpoint_bind_failures_total",
                "slurmlet_events_dropped_total", "process_virtual_memory_bytes", "process_max_fds",
                "process_start_time_seconds", "process_threads"}
    assert {name for name in ALL_METRICS if name not in shown} == left_out


def test_dashboard_can_be_imported():
    """Ids are unique, panels do not overlap, and the data source is the viewer's choice."""
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [(x, y) for panel in panels for grid in [panel["gridPos"]]
             for x in range(grid["x"], grid["x"] + grid["w"])
             for y in range(grid["y"], grid["y"] + grid["h"])]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    variables = {one["name"]: one for one in dashboard()["templating"]["list"]}
    assert set(variables) == {"datasource", "job", "node"}
    for panel in panels:
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"
