"""The RPM, by rpmlint's judgement and in a root of its own.

It was built with the macros of packaging/rpm/macros.debian and against Debian's libraries, so this
shows the spec, the scripts, and what RPM does with files and configuration. Not seen here: that
Rocky's packages satisfy BuildRequires and Requires (--nodeps), Rocky's own macros, and dnf.
"""
import pathlib
import re
import subprocess

import pytest

from built import only
from roots import REPOSITORY

CONFIG = "/etc/slurmlet/config.yaml"
STATE = "/var/lib/slurmlet"
WORK = REPOSITORY / "build/package"
# Directories of the system that the small root lacks; on Rocky they belong to its packages.
SHARED = {"/usr/share/doc", "/usr/share/licenses", "/usr/share/man", "/usr/share/man/man5",
          "/usr/share/man/man8"}


@pytest.fixture
def installed(root, rpm):
    root.before = root.files()
    root.rpm("-i", rpm)
    return root


@pytest.fixture(scope="module")
def looked_at(shared_root, rpm):
    """The same, for tests that only look."""
    shared_root.rpm("-i", rpm)
    return shared_root


@pytest.fixture(scope="session")
def newer(rpm, scratch):
    """The same tree packed again with a higher Release and another example configuration."""
    spec = scratch / "newer.spec"
    text = (WORK / "rpm/SPECS/slurmlet.spec").read_text()
    text = re.sub(r"(?m)^Release:.*", "Release: 99", text)
    text = text.replace("install -d -m 0750",
                        f"echo '# another example' >>%{{buildroot}}{CONFIG}\ninstall -d -m 0750")
    # Packed from what the first build compiled.
    text = re.sub(r"(?s)%prep\n.*?%install\n", "%prep\n%setup -T -D\n\n%build\n\n%install\n", text)
    spec.write_text(text)
    subprocess.run(
        ["rpmbuild", "--load", str(REPOSITORY / "packaging/rpm/macros.debian"), "--nodeps",
         "--noclean", "--without", "check", "--define", f"_topdir {scratch}/rpm", "--define",
         f"_sourcedir {WORK}/rpm/SOURCES", "--define", f"_builddir {WORK}", "-bb", str(spec)],
        check=True, capture_output=True)
    return only(scratch / "rpm/RPMS", "*/slurmlet-[0-9]*.rpm")


def test_rpmlint_finds_nothing(packages, rpm):
    done = subprocess.run(
        ["rpmlint", "--config", str(REPOSITORY / "packaging/rpm/rpmlint.toml"), "--rpmlintrc",
         str(REPOSITORY / "packaging/rpm/slurmlet.rpmlintrc"), str(rpm),
         str(only(packages, "slurmlet-operator-[0-9]*.rpm")),
         str(only(packages / "debug", "slurmlet-debuginfo-*.rpm")),
         str(REPOSITORY / "packaging/rpm/slurmlet.spec")],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "0 errors, 0 warnings" in done.stdout, done.stdout + done.stderr


def test_files_have_their_owners_and_modes(looked_at):
    assert looked_at.owner(CONFIG) == ("0o644", "root:root")
    assert looked_at.owner("/etc/slurmlet") == ("0o755", "root:root")
    assert looked_at.owner(STATE) == ("0o750", "slurmlet:slurmlet")
    assert looked_at.owner("/usr/sbin/slurmlet") == ("0o755", "root:root")
    assert looked_at.owner("/usr/lib/systemd/system/slurmlet.service") == ("0o644", "root:root")
    verified = looked_at.rpm("-V", "--nodeps", "slurmlet", check=False)
    assert verified.stdout == "", verified.stdout


def test_the_scripts_made_the_user_and_enabled_the_service(looked_at):
    account = looked_at.account("slurmlet")
    assert account[5] == STATE and account[6].endswith("/nologin")
    # By the preset that the package brings.
    assert looked_at.enabled("slurmlet.service") == "enabled"
    assert looked_at.enabled("slurmlet.socket") == "disabled"
    assert looked_at.enabled("slurmlet-detach.path") == "disabled"


def test_the_program_runs_as_its_user(looked_at):
    assert looked_at.run("slurmlet", "version").stdout.startswith("slurmlet ")
    node = looked_at.run("slurmlet", "print-node", "--nodename", "n1", user="slurmlet")
    assert '"kind": "Node"' in node.stdout


def test_the_operator_is_a_package_of_its_own(root, packages, rpm):
    operator = only(packages, "slurmlet-operator-[0-9]*.rpm")
    listing = lambda package: set(subprocess.run(  # noqa: E731
        ["rpm", "-qlp", str(package)], check=True, capture_output=True, text=True).stdout.splitlines())
    assert not [name for name in listing(rpm)
                if "operator" in name and not name.startswith("/usr/share/doc/")]
    assert {"/usr/sbin/slurmlet-operator", "/usr/lib/systemd/system/slurmlet-operator.service",
            "/etc/slurmlet/operator.yaml"} <= listing(operator)
    root.rpm("-i", operator)
    assert root.owner("/etc/slurmlet/operator.yaml") == ("0o644", "root:root")
    assert root.enabled("slurmlet-operator.service") == "disabled"
    assert "--kubeconfig" in root.run("slurmlet-operator", "--help").stdout
    root.rpm("-e", "slurmlet-operator")
    assert not root.file("/usr/sbin/slurmlet-operator").exists()


def test_it_carries_licence_documents_and_changelog(looked_at, rpm):
    def query(*arguments):
        return subprocess.run(["rpm", "-qp", *arguments, str(rpm)], check=True,
                              capture_output=True, text=True).stdout
    assert query("--licensefiles").strip().endswith("/LICENSE")
    assert "/README.md" in query("--docfiles")
    assert query("--configfiles").strip() == CONFIG
    assert "slurmlet developers" in query("--changelog")
    assert looked_at.file(query("--licensefiles").strip()).read_text() == \
        (REPOSITORY / "LICENSE").read_text()


def test_debug_information_fits_the_program(packages, rpm):
    """The build ID that the debuginfo package is filed under is the program's."""
    def listing(package):
        return subprocess.run(["rpm", "-qlp", str(package)], check=True, capture_output=True,
                              text=True).stdout
    ids = re.findall(r"/\.build-id/(\w\w/\w+)\n", listing(rpm))
    debug = listing(only(pathlib.Path(packages) / "debug", "slurmlet-debuginfo-*.rpm"))
    assert ids and f"/usr/lib/debug/.build-id/{ids[0]}.debug" in debug


def test_upgrade_and_downgrade_keep_identity_state_and_configuration(installed, rpm, newer):
    mine = installed.file(CONFIG)
    mine.write_text(mine.read_text() + "logLevel: debug\n")
    changed = mine.read_text()
    installed.file(STATE + "/kubeconfig").write_text("identity")
    uid = installed.account("slurmlet")[2]
    for package, arguments in ((newer, ["-U"]), (rpm, ["-U", "--oldpackage"])):
        installed.rpm(*arguments, package)
        assert mine.read_text() == changed
        assert installed.owner(CONFIG) == ("0o644", "root:root")
        assert installed.file(STATE + "/kubeconfig").read_text() == "identity"
        assert installed.owner(STATE) == ("0o750", "slurmlet:slurmlet")
        assert installed.account("slurmlet")[2] == uid
        assert installed.enabled("slurmlet.service") == "enabled"
    # %config(noreplace): the package's own stands beside it.
    assert installed.file(CONFIG + ".rpmnew").exists()


def test_an_untouched_configuration_is_replaced(installed, newer):
    installed.rpm("-U", newer)
    assert installed.file(CONFIG).read_text().endswith("# another example\n")
    assert not installed.file(CONFIG + ".rpmnew").exists()


def test_a_unit_that_was_disabled_stays_disabled(installed, newer):
    installed.run("systemctl", "disable", "slurmlet.service")
    installed.rpm("-U", newer)
    assert installed.enabled("slurmlet.service") == "disabled"


def test_erase_keeps_state_and_changed_configuration_alone(installed):
    mine = installed.file(CONFIG)
    mine.write_text(mine.read_text() + "logLevel: debug\n")
    installed.file(STATE + "/kubeconfig").write_text("identity")
    installed.rpm("-e", "slurmlet")
    assert installed.files() - installed.before - SHARED == {
        "/etc/slurmlet", CONFIG + ".rpmsave", STATE, STATE + "/kubeconfig"}
    assert installed.file(STATE + "/kubeconfig").read_text() == "identity"
    assert "logLevel: debug" in installed.file(CONFIG + ".rpmsave").read_text()


def test_erase_of_an_unused_package_leaves_nothing(installed):
    installed.rpm("-e", "slurmlet")
    assert installed.files() - installed.before - SHARED == set()
