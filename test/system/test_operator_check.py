"""`slurmlet-operator check`: what it finds, and that it changes nothing."""
import re
import shutil
import subprocess

import pytest

from harness.rig import wait_until
from harness.service_account import ServiceAccount
from test_operator import NODES, OPERATOR, Site



@pytest.fixture(scope="module")
def cluster(own_slurm):
    return own_slurm(nodes=NODES, cpus=2, cluster_name="opera")


@pytest.fixture(name="site")
def site_without_nodes(plane, cluster, account, tmp_path):
    one = Site(plane, cluster, account, tmp_path)
    one.kubeconfig = account.kubeconfig(tmp_path)
    yield one
    one.end()


def check(site, *flags):
    done = subprocess.run([OPERATOR, "check", f"--kubeconfig={site.kubeconfig}",
                           f"--slurm-conf={site.slurm.conf_path}", *flags], env={"PATH": "/usr/bin:/bin"},
                          capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_all_is_well(site):
    code, said = check(site)
    assert code == 0, said
    assert re.search(r"\+ API server +https://\S+ v1\.\S+ answered in \d+ ms "
                     r"as system:serviceaccount:kube-system:slurmlet-operator", said)
    assert re.search(r"- lease +slurmlet-system/slurmlet-operator-opera: no operator has led yet", said)
    assert re.search(r"\+ slurm.conf +ClusterName opera", said)
    assert re.search(r"\+ rights +all 19 that it needs", said)
    assert re.search(r"\+ slurmctld +2 nodes in \d+ ms", said)
    assert re.search(r"\+ privileges +Slurm shows all nodes and jobs to user root", said)
    assert re.search(r"\+ jobs +none in \d+ ms", said)
    assert "management" not in said
    assert said.endswith("no errors\n")
    assert site.api.find(site.lease) is None


def test_it_names_the_leader_and_one_that_has_stopped(site):
    one = site.start()
    wait_until(lambda: "this operator leads" in one.output(), what="a leader")
    code, said = check(site)
    assert code == 0
    assert re.search(r"\+ lease +slurmlet-system/slurmlet-operator-opera: \S+_[0-9a-f]{16} leads, renewed at ", said)
    one.kill()
    wait_until(lambda: "led and has stopped, renewed at " in check(site)[1], what="its Lease to expire")
    assert check(site)[0] == 0  # a warning


def test_slurmctld_away(site):
    site.slurm.daemon("stop", "slurmctld")
    try:
        code, said = check(site)
        assert code == 1
        assert re.search(r"x slurmctld +does not report its nodes: ControllerUnreachable", said), said
    finally:
        site.slurm.daemon("start", "slurmctld")


@pytest.mark.parametrize("flags, words", [
    (["--slurm-conf=/nonexistent/slurm.conf"], r"x slurm.conf .*/nonexistent/slurm.conf"),
    (["--kubeconfig=/nonexistent/kubeconfig"], r"x credential .*/nonexistent/kubeconfig"),
    (["--slurm-jwt-file=/nonexistent/jwt"], r"x slurmctld +does not report its nodes: .*/nonexistent/jwt"),
])
def test_what_is_missing_is_named(site, flags, words):
    code, said = check(site, *flags)
    assert code == 1
    assert re.search(words, said), said


def test_a_credential_that_is_rejected(site, tmp_path):
    wrong = tmp_path / "wrong"
    wrong.touch(mode=0o600)
    wrong.write_text(re.sub(r'"token": "[^"]*"', '"token": "nonsense"', site.kubeconfig.read_text()))
    code, said = check(site, f"--kubeconfig={wrong}")
    assert code == 1
    assert re.search(r"x API server +https://\S+: rejects the credential: 401", said), said


@pytest.fixture(name="programs")
def directory_of_programs(tmp_path):
    """Slurm's, as links."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name in ("scontrol", "squeue", "scancel"):
        (directory / name).symlink_to(shutil.which(name))
    return directory


def test_each_program_of_slurm_is_run(site, programs):
    assert check(site, f"--slurm-bin-dir={programs}")[0] == 0
    for name, subject in (("scontrol", "slurmctld"), ("squeue", "jobs")):
        program = (programs / name).readlink()
        (programs / name).unlink()
        code, said = check(site, f"--slurm-bin-dir={programs}")
        (programs / name).symlink_to(program)
        assert code == 1
        assert re.search(rf"x {subject} .*{programs}/{name}", said), said
        errors = 2 if name == "scontrol" else 1  # it also says what Slurm hides
        assert said.count("\nx ") + said.startswith("x ") == errors, said


def test_jobs_that_are_not_shown(site, programs):
    (programs / "squeue").unlink()
    (programs / "squeue").write_text("#!/bin/sh\necho 'slurm_load_jobs error: Access/permission denied' >&2\nexit 1\n")
    (programs / "squeue").chmod(0o755)
    code, said = check(site, f"--slurm-bin-dir={programs}")
    assert code == 1
    assert re.search(r"x jobs +could not be listed: .*Access/permission denied", said), said
    job = site.slurm.submit("op001")
    try:
        assert re.search(r"\+ jobs +1 in \d+ ms", check(site)[1])
    finally:
        site.slurm.command("scancel", job)


def account_with(plane, name, rules, namespace=None):
    """A service account with these rights alone."""
    one = ServiceAccount(plane, name, "kube-system")
    if rules:
        one.grant(name, rules)
    if namespace:
        for collection, body in (
                ("roles", {"rules": namespace[1]}),
                ("rolebindings", {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
                                  "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "kube-system"}]})):
            plane.admin.create(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace[0]}/{collection}",
                               {"metadata": {"name": name}, **body})
    return one


MACHINES = {"apiGroups": ["cluster.x-k8s.io"], "resources": ["machines"], "verbs": ["get", "list", "watch", "patch"]}
EVENTS = {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]}


def management_of(site, one, *flags):
    return check(site, f"--management-kubeconfig={one}", "--machine-cluster=default/c1", *flags)


def test_the_server_with_the_machines(site, plane, tmp_path):
    one = account_with(plane, "check-management", [], ("default", [MACHINES, EVENTS]))
    code, said = management_of(site, one.kubeconfig(tmp_path))
    assert code == 0, said
    assert re.search(r"\+ management +https://\S+ v1\.\S+ answered in \d+ ms as system:serviceaccount:kube-system:"
                     r"check-management\n\+ rights there +all 6 that it needs", said), said
    assert re.search(r"\+ rights +all 15 that it needs", said), said  # the operator's own need not have them


def test_a_right_that_is_missing_there(site, plane, tmp_path):
    one = account_with(plane, "check-reader", [{**MACHINES, "verbs": ["get", "list", "watch"]}, EVENTS])
    code, said = management_of(site, one.kubeconfig(tmp_path))
    assert code == 1
    assert re.search(r"x rights there +1 of 6 missing: patch machines\.cluster\.x-k8s\.io in default\n"
                     r" +-> in that cluster: kubectl apply -k deploy/operator/management\n", said), said


def test_a_credential_that_is_not_accepted_there(site, tmp_path):
    wrong = tmp_path / "wrong"
    wrong.touch(mode=0o600)
    wrong.write_text(re.sub(r'"token": "[^"]*"', '"token": "nonsense"', site.kubeconfig.read_text()))
    code, said = management_of(site, wrong)
    assert code == 1
    assert re.search(r"x management +https://\S+: rejects the credential: 401", said), said
    assert "-> give it a valid one (--management-kubeconfig)" in said
    assert "rights there" not in said
    code, said = management_of(site, "/nonexistent/management")
    assert code == 1
    assert re.search(r"x credential .*/nonexistent/management", said), said
    assert re.search(r"\+ rights +all", said)
