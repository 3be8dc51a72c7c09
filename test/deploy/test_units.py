"""The units that ship, by systemd's own judgement: correct, tightly shut, and with a reason beside
each exposure that is left."""
import json
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lab"))
from harness.api import repository  # noqa: E402

SERVICE = "slurmlet.service"
MOST_EXPOSURE = 20  # tenths
REASONS = "# ---- Exposures left on purpose"


def unit_text(unit):
    return (repository() / "systemd" / unit).read_text()


def analyze(*arguments, **options):
    return subprocess.run(["systemd-analyze", "--no-pager", *arguments], capture_output=True,
                          text=True, timeout=60, **options)


def settings(unit, key):
    return re.findall(rf"^{re.escape(key)}=(.*)$", unit_text(unit), re.M)


def reasons(unit):
    """The comment that explains the exposures, up to the next section."""
    return unit_text(unit).split(REASONS, 1)[1].split("\n[", 1)[0]


def exposures(unit):
    """[name as systemd-analyze lists it] of what is not shut."""
    out = analyze("security", "--offline=true", "--json=short",
                  str(repository() / "systemd" / unit))
    return [row["name"] for row in json.loads(out.stdout) if float(row["exposure"] or 0) > 0]


def unexplained(names, text):
    """Those that the comment does not name: the setting, and which of its words is meant."""
    missing = []
    for name in names:
        key, _, words = name.replace("AF_(INET|INET6)", "AF_INET AF_INET6").partition("=")
        wanted = [key + "="] + re.findall(r"[@A-Z][A-Za-z_0-9]+", words.partition("/")[0])
        if not all(re.search(rf"{re.escape(word)}\b" if word[-1] != "=" else re.escape(word), text)
                   for word in wanted):
            missing.append(name)
    return missing


def test_the_service_is_shut_but_for_what_it_needs():
    out = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSURE}",
                  str(repository() / "systemd" / SERVICE))
    assert out.returncode == 0, out.stdout[-300:] + out.stderr
    level = float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", out.stdout)[1])
    assert level <= MOST_EXPOSURE / 10


def test_each_exposure_has_its_reason_beside_it():
    names = exposures(SERVICE)
    assert names, "a unit without any exposure: the list was not read"
    assert unexplained(names, reasons(SERVICE)) == []


def test_an_exposure_without_a_reason_is_found():
    text = "# PrivateUsers=: why\n# RestrictAddressFamilies=~AF_UNIX: why\n"
    assert unexplained(["PrivateUsers=", "RestrictAddressFamilies=~AF_UNIX"], text) == []
    assert unexplained(["ProtectHome=", "RestrictAddressFamilies=~AF_NETLINK"], text) == [
        "ProtectHome=", "RestrictAddressFamilies=~AF_NETLINK"]


def test_systemd_finds_no_mistake(tmp_path):
    """The program itself need not be installed where the tests run."""
    program = shutil.which("true")
    copy = tmp_path / SERVICE
    copy.write_text(unit_text(SERVICE).replace("/usr/sbin/slurmlet", program))
    out = analyze("verify", "--man=no", str(copy))
    assert (out.returncode, out.stdout + out.stderr) == (0, "")


def test_the_socket_has_the_ports_of_the_configuration(tmp_path):
    (tmp_path / "slurmlet.socket").write_text(unit_text("slurmlet.socket"))
    (tmp_path / "slurmlet.service").write_text(
        unit_text("slurmlet.service").replace("/usr/sbin/slurmlet", shutil.which("true")))
    out = analyze("verify", "--man=no", str(tmp_path / "slurmlet.socket"))
    assert (out.returncode, out.stdout + out.stderr) == (0, "")
    defaults = (repository() / "packaging/config.yaml").read_text()
    kubelet, health = (re.search(rf"#{key}: (\d+)", defaults)[1] for key in ("port", "healthzPort"))
    assert settings("slurmlet.socket", "ListenStream") == [kubelet, f"127.0.0.1:{health}"]


def test_a_mistake_would_be_found(tmp_path):
    copy = tmp_path / "slurmlet.service"
    copy.write_text(unit_text("slurmlet.service").replace("WatchdogSec=60", "WatchdogSec=soon"))
    assert "soon" in analyze("verify", "--man=no", str(copy)).stderr


def test_the_service_needs_neither_munge_nor_slurmd():
    """Their absence is news for the Node, and must not keep the unit from starting."""
    unit = SERVICE
    for key in ("Requires", "Requisite", "BindsTo", "PartOf", "AssertPathExists",
                "ConditionPathExists", "ReadWritePaths", "ReadOnlyPaths", "BindPaths"):
        assert settings(unit, key) == [], key
    assert settings(unit, "Wants") == ["network-online.target"]
    after = settings(unit, "After")[0].split()
    assert {"network-online.target", "cloud-init-local.service"} <= set(after)
    assert "slurmd.service" not in after


def test_the_unit_hands_over_every_credential_that_the_program_knows():
    source = (repository() / "src/config/credentials.cpp").read_text()
    known = re.findall(r'\{"(slurmlet\.[a-z.-]+)",\s*"', source)
    assert known
    assert settings("slurmlet.service", "LoadCredential") == known


def test_the_watchdog_outlasts_the_patience_of_the_daemon():
    """Twice: a hang ends the pings before it is certain, and a ping that is due is not late."""
    unit = SERVICE
    assert settings(unit, "Type") == ["notify"]
    assert settings(unit, "Restart") == ["always"]
    assert int(settings(unit, "WatchdogSec")[0]) >= 2 * 30
    assert int(settings(unit, "TimeoutAbortSec")[0]) <= 10
