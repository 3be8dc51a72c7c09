#!/usr/bin/python3
"""docs/reference/*.md: made from the tables in the code, from YAML and from the programs' --help.

  scripts/docs/reference.py               writes the pages
  scripts/docs/reference.py --check       says which are not current, and exits with 1 then

The programs are SLURMLET_UNDER_TEST and the operator beside it, else those of build/release. Without them the two pages
made from --help are left as they are. test/docs/test_reference.py is the test."""
import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

import generated
import sources
from markdown import ROOT

sys.path.insert(0, str(ROOT / "test/lab/harness"))
import metric_names  # noqa: E402

PAGES = ROOT / "docs/reference"
MEANINGS = Path(__file__).with_name("meanings.yaml")
MADE = "<!-- Made by scripts/docs/reference.py from {}. A test keeps it current. -->\n\n"


class Missing(Exception):
    """Names of the code without a meaning, or meanings without a name."""


def meanings(part, names):
    known = yaml.safe_load(MEANINGS.read_text())[part]
    problems = [f"{name} is in the code, and not in {MEANINGS.name}, {part}" for name in names if name not in known]
    problems += [f"{name} is in {MEANINGS.name}, {part}, and not in the code" for name in known if name not in names]
    if problems:
        raise Missing("\n".join(problems))
    return known


def text_of(page):
    return yaml.safe_load(MEANINGS.read_text())["texts"][page]


def cell(text):
    return re.sub(r"\s+", " ", str(text)).strip().replace("|", "\\|")


def sentence(text):
    text = cell(text)
    begin = text[:1] if re.match(r"slurm|init, |kubectl|munge|scontrol|status\.|debug, ", text) else text[:1].upper()
    return begin + text[1:] + ("" if text.endswith((".", ":", "?")) else ".")


def placeholders(text):
    """{{ $labels.node }} → NODE"""
    return re.sub(r"\{\{ *\$(?:labels\.)?(\w+)[^}]*\}\}", lambda match: match.group(1).upper(), text)


def table(head, rows):
    lines = [" | ".join(head), " | ".join("---" for _ in head)] + [" | ".join(cell(c) for c in row) for row in rows]
    return "".join(f"| {line} |\n" for line in lines) + "\n"


def code(text):
    return f"`{text}`" if text else ""


# -- settings --------------------------------------------------------------------


def settings():
    page = (ROOT / "packaging/man/slurmlet.yaml.5").read_text()
    body = page.split(".SH SETTINGS\n")[1].split(".SH EXAMPLE")[0].replace("\\-", "-").replace("\\e", "\\").replace("\\&", "")
    out = "# Settings of slurmlet\n\n" + MADE.format("the table in src/config/settings_table.cpp, by way of slurmlet.yaml(5)")
    out += ("Use this when you write `/etc/slurmlet/config.d/10-site.yaml`. A dot stands for nesting: `slurm.source` is the key "
            "`source` under `slurm`.\n\nFlags override environment variables. Those override the file. The file overrides the "
            "defaults. A change takes `systemctl restart slurmlet`; the Node stays Ready over it.\n\n")
    for part in re.split(r"(?m)^\.SS ", body)[1:]:
        section, *entries = re.split(r"(?m)^\.TP\n", part)
        out += f"## {section.strip()}\n\n"
        for entry in entries:
            first, *lines = entry.rstrip("\n").split("\n")
            key, rest = re.match(r"\\fB([\w.]+)\\fR \((.*)\)$", first).groups()
            kind, _, default = rest.partition("; default ")
            flag = lines.pop().rstrip(".")
            out += f"### {key}\n\n{sentence(lines.pop(0))}\n\n- Type: {kind}\n"
            if default:
                out += f"- Default: {re.sub(r'.fB(.*?).fR', bold, default)}\n"
            out += "".join(f"- {sentence(line)}\n" for line in lines)
            out += f"- {re.sub(r'.fB(.*?).fR', bold, flag)}\n\n"
    return out


def bold(match):
    return f"`{match.group(1)}`"


# -- programs --------------------------------------------------------------------


def program(name):
    path = Path(os.environ.get("SLURMLET_UNDER_TEST") or ROOT / "build/release/slurmlet").with_name(name)
    return path if path.exists() else None


def shown(name, *arguments):
    return subprocess.run([str(program(name)), *arguments, "--help"], check=True, capture_output=True, text=True).stdout


def operator_settings():
    text = shown("slurmlet-operator")
    out = "# Settings of slurmlet-operator\n\n" + MADE.format("slurmlet-operator --help")
    out += ("Use this when you write `/etc/slurmlet/operator.yaml`. A flag overrides the key of the file. A change takes "
            "`systemctl restart slurmlet-operator`.\n\n")
    for flag, kind, key, text_ in re.findall(r"(?m)^  (--[\w-]+)(?: (\w+))?  \[(\w+)\]\n((?:      .*\n)+)", text):
        text_ = cell(text_)
        default = re.search(r" \(default ([^()]*)\)$", text_)
        out += f"## {key}\n\n{sentence(text_[:default.start()] if default else text_)}\n\n"
        out += f"- Type: {kind or 'true or false'}\n"
        out += f"- Default: `{default.group(1)}`\n" if default else ""
        out += f"- Flag `{flag}`\n\n"
    return out


def commands():
    out = "# Commands\n\n" + MADE.format("the programs' --help")
    out += ("Use this when you look for a command's arguments or its exit codes. [What they print](../tutorials/first-node.md). "
            "`slurmlet` alone is the daemon. If a drop-in of yours gives it `--config` or environment variables, give commands the same. On a machine: "
            "`man slurmlet`, `man slurmlet-operator`, `man slurmlet.yaml`.\n\n")
    out += text_of("commands") + "\n"
    usage = shown("slurmlet").split("Usage:\n", 1)[1].split("\n\n", 1)[0]
    names = [line.split()[1] for line in usage.splitlines() if re.match(r"  \S+ [a-z]", line)]
    for name in names:
        if name == "help":
            continue
        text = shown("slurmlet", name).split("\nGeneral flags:")[0].strip()
        out += f"## slurmlet {name}\n\n```text\n{text}\n```\n\n"
    text = shown("slurmlet-operator").split("\nflags, and keys")[0].strip()
    out += f"## slurmlet-operator\n\n```text\n{text}\n```\n\nFlags and keys: [operator settings](operator-settings.md).\n"
    return out


# -- conditions ------------------------------------------------------------------

CONDITION_FILES = ("node/conditions.cpp", "node/state_conditions.cpp", "node/gpu_health.cpp", "node/slurm_view.cpp",
                   "operator/rules/power_rules.cpp")
WORD = re.compile(r"(?=.+[A-Z])[A-Z][A-Za-z]*[a-z][A-Za-z]*|Draining|Drained")


def ready_by_slurm():
    """Reasons that `readyFollows: slurm` makes of Slurm's words."""
    text = sources.without_includes(sources.SOURCES / "node/conditions.cpp")
    out = {}
    for words in re.findall(r'for \(const char\* flag : \{([^}]*)\}\)(?=[^}]*"Slurm" \+ camel_case)', text):
        for word in re.findall(r'"(\w+)"', words):
            out["Slurm" + sources.camel_case(word)] = word
    return {**out, "SlurmDown": "DOWN"}


def failures():
    """[(reason, what, fix)] of src/node/slurm_failure.cpp."""
    out = []
    for row in sources.rows("node/slurm_failure.cpp", "kKinds"):
        texts = sources.strings(row)
        out.append((texts[2], texts[3], texts[4]))
    return out


def reasons():
    """All reasons of conditions that the node's code can write."""
    found = {value for name, value in sources.constants("node/vocabulary.h").items() if name in ("kDrained", "kNotAskedYet", "kJobStarted")}
    for path in CONDITION_FILES:
        found |= {text for kind, text in sources.tokens_of(path)
                  if kind == "string" and WORD.fullmatch(text)} - {"SlurmNode", "PrologFlags"}
    found.add("SlurmNode")
    return found


def fix_of_word(word, has_section):
    name = f"SlurmNodeState{sources.camel_case(word)}"
    return f"[{name}](#{name.lower()})" if word in has_section else {"POWERING_UP": "wait", "FUTURE": "[SlurmFuture](#slurmfuture)"}.get(word, "`scontrol update nodename=NAME state=power_up`")


def conditions():
    core, further = (sources.rows("node/state_conditions.cpp", name) for name in ("kCore", "kFurther"))
    tabled = {sources.strings(row)[1] for row in core} | set(ready_by_slurm()) | {reason for reason, *_ in failures()}
    known = meanings("reasons", sorted(reasons() - tabled))
    words = meanings("states", [sources.strings(row)[0] for row in core])
    out = "# Conditions and reasons\n\n" + MADE.format("the tables in src/node")
    out += ("Use this when `kubectl describe node` shows a condition or a reason that you want to understand. Alerts may match "
            "types and reasons; messages may change. [How Slurm's state is known](../explanation/slurm-state.md).\n\n"
            "The reason `NodeStatusUnknown` is Kubernetes' own: [the Lease is not renewed]"
            "(../troubleshooting.md#reason-nodestatusunknown).\n\n")
    out += "## Slurm's states\n\nAlways there. Slurm's own words are in the annotation `slurmlet.io/slurm-state`.\n\n"
    for row in core:
        word, no_reason, no_message, yes = sources.strings(row)
        out += f"### SlurmNodeState{sources.camel_case(word)}\n\n{words[word]}\n\n"
        yes_reason = "Draining` or `Drained" if word == "DRAIN" else sources.camel_case(word)
        out += table(("Status", "Reason", "Message begins"), [
            ("True", code(yes_reason), yes or "draining, or drained: who did it, since when, and why"),
            ("False", code(no_reason), no_message)])
    out += "## Present while they hold\n\n"
    out += table(("Type", "Message"), [
        (f"`SlurmNodeState{sources.camel_case(sources.strings(row)[0])}`",
         sentence(", ".join(filter(None, sources.strings(row)[1:]))))
        for row in further])
    out += ("A word of a newer Slurm gets a condition of that form too. `SlurmNodeStateOther` has what is no word. PLANNED has "
            "none: it changes with every backfill cycle.\n\n## Reasons\n\n")
    for reason in sorted(known):
        entry = known[reason]
        on = ", ".join(code(part) for part in entry["about"].split(", "))
        out += f"### {reason}\n\n{on}. {entry['means']}\n\n"
        out += f"Fix: {entry['do']}.\n\n" if "do" in entry else ""
    out += ("## Ready with readyFollows: slurm\n\nWith `node.readyFollows: slurm`, `Ready` is also False while Slurm reports one "
            "of these.\n\n")
    has_section = {sources.strings(row)[0] for row in core}
    out += table(("Reason", "Slurm's word", "Fix"), [(code(name), word, fix_of_word(word, has_section))
                                                     for name, word in sorted(ready_by_slurm().items())])
    out += ("## Why Slurm's conditions are Unknown\n\nThe conditions `SlurmNodeState…` are then `Unknown`. Jobs run on. The message "
            "has the cause, the fix and the last known state with its time. The next answer of slurmctld ends it.\n\n")
    for reason, what, fix in failures():
        what = what.replace("{slurmctld}", "slurmctld").replace("{host}", "the node")
        out += f"### {reason}\n\n{sentence(what)}\n\n"
        out += f"Fix: {fix}.\n\n" if fix else "Fix: what the message says; several slurmds on one host need `slurm.nodeName`.\n\n"
    return out


# -- Events ----------------------------------------------------------------------


def events():
    found = sources.event_reasons()
    known = meanings("events", sorted(found))
    out = "# Events\n\n" + MADE.format("the reasons in src")
    out += ("Use this when `kubectl describe` shows an Event of slurmlet or slurmlet-operator. "
            "`kubectl get events -A --field-selector reason=NAME` lists them.\n\n")
    for name in sorted(known):
        entry = known[name]
        kind = found[name] or entry["type"]
        out += f"### {name}\n\n{kind}, on {entry['about']}. {entry['means']}\n\n"
        out += f"Fix: {entry['do']}.\n\n" if "do" in entry else ""
    return out


# -- labels ----------------------------------------------------------------------


def labels():
    names = {name: text for name, text in sources.constants("node/vocabulary.h").items()
             if ("/" in text and "://" not in text and name not in ("kDomainPrefix", "kGenericGpu")) or name == "kLabelType"}
    known = meanings("names", sorted(names))
    out = "# Labels, annotations and taints\n\n" + MADE.format("src/node/vocabulary.h")
    out += "Use this when you select Nodes, or look for what slurmlet wrote on one.\n\n"
    for kind, title in (("label", "Labels"), ("annotation", "Annotations"), ("taint", "Taints")):
        rows = [(code(known[name].get("name", text)), known[name]["of"], known[name]["by"], known[name]["means"])
                for name, text in names.items() if kind in known[name]["kind"].split(", ")]
        out += f"## {title}\n\n" + table(("Name", "On", "Written by", "Meaning"), sorted(rows))
    return out + text_of("labels")


# -- metrics, alerts -------------------------------------------------------------


def metrics():
    found, old = sources.metrics()
    names = {**metric_names.METRICS, **metric_names.OPERATOR_METRICS, **metric_names.SCALING_METRICS}
    missing = sorted(set(names) - set(found))
    if missing:
        raise Missing(f"metrics without help in the sources: {missing}")
    out = "# Metrics\n\n" + MADE.format("the sources, and test/lab/harness/metric_names.py, which tests compare with a scrape")
    out += ("Use this when you write a dashboard or an alert. A value that is not known is left out. "
            "[How to scrape](../how-to/alerting.md).\n\n")
    groups = [("slurmlet", "Port 10250 (`endpoint.port`), `/metrics`.", metric_names.METRICS),
              ("slurmlet-operator", "`metricsAddress`, `/metrics`.", metric_names.OPERATOR_METRICS),
              ("slurmlet-operator with autoscale: true", "There too, of the one that leads. [Autoscaling](../how-to/autoscaling.md).",
               metric_names.SCALING_METRICS),
              ("The node's usage", "Port 10250, `/metrics/resource`, as the kubelet has it for metrics-server.",
               {name: set() for name in found if name not in names})]
    for title, where, some in groups:
        out += f"## {title}\n\n{where}\n\n"
        out += table(("Name", "Meaning", "Type", "Labels"), [
            (code(name), found[name][1], found[name][0], ", ".join(code(label) for label in sorted(some[name])))
            for name in sorted(some)])
    out += "## Old names\n\nExported beside the new ones for one release.\n\n"
    out += table(("Old name", "New name"), [(code(name), code(new)) for name, new in sorted(old.items())])
    return out


def alert_rules():
    groups = yaml.safe_load((ROOT / "deploy/prometheus/slurmlet.rules.yaml").read_text())["groups"]
    return [rule for each in groups for rule in each["rules"] if "alert" in rule]


def alerts():
    rules = alert_rules()
    known = meanings("alerts", [rule["alert"] for rule in rules])
    out = "# Alerts\n\n" + MADE.format("deploy/prometheus/slurmlet.rules.yaml")
    out += ("Use this when one of slurmlet's alerts fires. `deploy/prometheus/slurmlet.rules.yaml` has them; "
            "[how to scrape](../how-to/alerting.md).\n\n")
    out += table(("Alert", "Severity", "After"), [
        (f"[{rule['alert']}](#{rule['alert'].lower()})", rule["labels"]["severity"], rule.get("for", "at once"))
        for rule in rules])
    for rule in rules:
        notes = rule["annotations"]
        out += f"## {rule['alert']}\n\n{sentence(placeholders(notes['summary']))}\n\n"
        out += f"{sentence(placeholders(notes['description']))}\n\n"
        out += f"Fix: {known[rule['alert']]}\n\n```text\n{rule['expr'].strip()}\n```\n\n"
    return out


# -- permissions -----------------------------------------------------------------


def rights_of_node():
    """[(group, resource, verb, limited to)] of needed_rights() in src/cli/check/check_node.cpp."""
    text = sources.without_includes(sources.SOURCES / "cli/check/check_node.cpp")
    body = text[text.index("needed_rights("):text.index("NodeSeen read_node")]
    body = body.replace("kLeases", '"coordination.k8s.io"').replace("kube::kLeaseNamespace", '"kube-node-lease"')
    for name, words in (("own_node", "own name"), ("own_pods", "own pods"), ("name", "own name")):
        body = re.sub(rf"\b{name}\b(?=[,}}])", f'"{words}"', body)
    every = sources.tokens(body)
    verbs = re.search(r"for \(const char\* verb : \{([^}]*)\}", body).group(1)
    out = []
    for i, token in enumerate(every):
        if token == sources.OPEN:
            fields = [value for kind, value in sources.group(every, i)[1:] if (kind, value) != ("sign", ",")]
            if len(fields) != 7:
                continue
            verb, api, resource, sub, name, space, selector = fields
            limit = selector or name
            for one in re.findall(r'"(\w+)"', verbs) if verb == "verb" else [verb]:
                out.append((api, resource + (f"/{sub}" if sub else ""), one, ", ".join(filter(None, [limit, space]))))
    return out


def rules_of(path):
    for document in yaml.safe_load_all((ROOT / path).read_text()):
        if document and document.get("kind") in ("ClusterRole", "Role"):
            yield document


def permissions():
    out = "# Permissions\n\n" + MADE.format("src/cli/check/check_node.cpp and deploy/**/*.yaml")
    out += ("Use this when you decide who may do what. `slurmlet check` and `slurmlet-operator check` say in the line `rights` "
            "which are missing.\n\n## slurmlet\n\nThe user `system:node:NAME` in the group `system:nodes` has these by the Node "
            "authorizer and NodeRestriction. Another user needs them by RBAC.\n\n")
    grouped = {}
    for api, resource, verb, limit in rights_of_node():
        grouped.setdefault((api, resource, limit), []).append(verb)
    out += table(("API group", "Resource", "Verbs", "Limited to"),
                 [(api or "core", resource, ", ".join(verbs), limit) for (api, resource, limit), verbs in grouped.items()])
    out += ("`certificatesigningrequests`: while slurmlet requests its own certificates. `tokenreviews` and "
            "`subjectaccessreviews`: while port 10250 is served.\n\nOn the host: the user `slurmlet`, no capability, no device. It "
            "writes only `/var/lib/slurmlet` and `/run/slurmlet`.\n\n")
    for path in sorted([*(ROOT / "deploy/operator").glob("*.yaml"), *(ROOT / "deploy/operator/management").glob("*.yaml"),
                        *(ROOT / "deploy/rbac").glob("*.yaml")]):
        name = path.relative_to(ROOT)
        rows = []
        for role in rules_of(name):
            where = role["metadata"].get("namespace", "whole cluster")
            for rule in role["rules"]:
                rows.append((role["metadata"]["name"], where, ", ".join(rule["apiGroups"]) or "core",
                             ", ".join(rule["resources"]) + (f" ({', '.join(rule['resourceNames'])})" if "resourceNames" in rule else ""),
                             ", ".join(rule["verbs"])))
        if rows:
            out += f"## {name}\n\n" + table(("Role", "In", "API group", "Resources", "Verbs"),
                                            [(a, b, c.strip(", ") or "core", d, e) for a, b, c, d, e in rows])
    out += ("What slurmlet-operator may change of a Node or a Machine is limited further by `deploy/operator/admission.yaml`: "
            "[who may write what](../explanation/security.md#who-may-write-what).\n")
    return out


MADE_OF_FILES = {"settings": settings, "conditions": conditions, "events": events, "labels": labels, "metrics": metrics,
                 "alerts": alerts, "permissions": permissions}
MADE_OF_HELP = {"commands": (commands, ("slurmlet", "slurmlet-operator")),
                "operator-settings": (operator_settings, ("slurmlet-operator",))}


def pages():
    """{path: text} of those that can be made here."""
    out = {**MADE_OF_FILES, **{name: make for name, (make, programs) in MADE_OF_HELP.items() if all(map(program, programs))}}
    return {PAGES / f"{name}.md": make().rstrip("\n") + "\n" for name, make in out.items()}


def main():
    try:
        made = pages()
    except Missing as problem:
        sys.exit(str(problem))
    generated.write(made)


if __name__ == "__main__":
    main()
