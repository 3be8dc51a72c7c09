"""Prometheus on loopback, scraping one node with a service account token, and promtool."""
import json
import pathlib
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from .programs import PROMETHEUS, PROMTOOL, Program, free_port
from .rig import wait_until

INTERVAL = 1  # seconds between scrapes


def promtool(*arguments, text=None):
    """Runs promtool; raises with what it said when it finds fault."""
    done = subprocess.run([str(PROMTOOL), *map(str, arguments)], input=text, capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"promtool {' '.join(map(str, arguments))}:\n"
                             f"{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def check_metrics(text):
    """promtool's verdict on an exposition: "" or its complaints about names and help texts."""
    done = subprocess.run([str(PROMTOOL), "check", "metrics"], input=text, capture_output=True,
                          text=True, check=False)
    return done.stdout + done.stderr


class Prometheus(Program):
    """Scrapes https://TARGET PATH for each (job, path) of `jobs`; several targets: {label node: TARGET}. Without `ca_file` the target's
    certificate is not verified; without `token_file` it sends no credential."""

    def __init__(self, directory, target, jobs=(("slurmlet", "/metrics"),), token_file=None,
                 ca_file=None, rules=()):
        directory = pathlib.Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        tls = {"ca_file": str(ca_file)} if ca_file else {"insecure_skip_verify": True}
        nodes = [{"targets": [target]}] if isinstance(target, str) else [
            {"targets": [one], "labels": {"node": name}} for name, one in target.items()]
        scrapes = []
        for job, path in jobs:
            scrape = {"job_name": job, "scheme": "https", "metrics_path": path, "tls_config": tls,
                      "static_configs": nodes}
            if token_file:
                scrape["authorization"] = {"credentials_file": str(token_file)}
            scrapes.append(scrape)
        config = directory / "prometheus.yaml"
        every = f"{INTERVAL}s"
        config.write_text(json.dumps({  # JSON is YAML
            "global": {"scrape_interval": every, "scrape_timeout": every,
                       "evaluation_interval": every},
            "rule_files": [str(rule) for rule in rules], "scrape_configs": scrapes}))
        promtool("check", "config", config)
        self.url = f"http://127.0.0.1:{free_port()}"
        super().__init__(directory, [
            PROMETHEUS, f"--config.file={config}", f"--storage.tsdb.path={directory}/data",
            f"--web.listen-address={self.url[len('http://'):]}"], "prometheus")
        wait_until(self._ready, what="Prometheus to be ready")

    def _ready(self):
        self.alive()
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5):
                return True
        except OSError:
            return False

    def api(self, path, **parameters):
        """The data of /api/v1/PATH; what Prometheus rejects is a ValueError with its reason."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(json.load(error)["error"]) from error

    def query(self, expression):
        """[(labels, value)] of an instant query."""
        return [(entry["metric"], float(entry["value"][1]))
                for entry in self.api("query", query=expression)["result"]]

    def wait_query(self, expression, timeout=60):
        """Until an instant query has a result; returns it."""
        def result():
            self.alive()
            return self.query(expression)
        try:
            return wait_until(result, timeout, f"a result of {expression}")
        except TimeoutError as error:
            raise TimeoutError(f"{error}; targets: {self.targets()}") from error

    def targets(self):
        """[(job, health, last error)]"""
        return [(one["labels"]["job"], one["health"], one["lastError"])
                for one in self.api("targets")["activeTargets"]]
