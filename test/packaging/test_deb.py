"""The DEB, by lintian's judgement and in an empty Debian 12."""
import json
import re
import shutil
import subprocess

import pytest

from built import only
from roots import REPOSITORY

CONFIG = "/etc/slurmlet/config.yaml"
COPIED_FROM = "/usr/share/slurmlet/config.yaml"
STATE = "/var/lib/slurmlet"
VERSION = re.search(r"project\(slurmlet VERSION (\S+)",
                    (REPOSITORY / "CMakeLists.txt").read_text()).group(1)

HELPER = "/var/lib/systemd/deb-systemd-helper"
# Directories that deb-systemd-helper makes for the first unit of any package.
HELPERS = {f"{HELPER}-enabled", f"{HELPER}-masked", f"{HELPER}-enabled/multi-user.target.wants",
           "/etc/systemd/system/multi-user.target.wants"}


def repacked(deb, directory, version, config=None, conffile=None):
    """The same package as another version, with another configuration if wished, or with one as a
    conffile, which 0.1.0 had."""
    tree = directory / f"tree-{version}"
    subprocess.run(["dpkg-deb", "-R", str(deb), str(tree)], check=True)
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"(?m)^Version: .*", f"Version: {version}", control.read_text()))
    if config:
        (tree / COPIED_FROM[1:]).write_text(config)
    if conffile:
        (tree / COPIED_FROM[1:]).unlink()
        (tree / "DEBIAN/postinst").unlink()
        (tree / CONFIG[1:]).write_text(conffile)
        (tree / "DEBIAN/conffiles").write_text(f"{CONFIG}\n")
    out = directory / f"slurmlet_{version}.deb"
    subprocess.run(["dpkg-deb", "-b", "--root-owner-group", str(tree), str(out)], check=True,
                   capture_output=True)
    shutil.rmtree(tree)
    return out


@pytest.fixture
def installed(root, deb):
    root.before = root.files()
    root.dpkg("-i", packages=[deb])
    return root


@pytest.fixture(scope="module")
def looked_at(shared_root, deb):
    """The same, for tests that only look."""
    shared_root.dpkg("-i", packages=[deb])
    return shared_root


@pytest.mark.parametrize("package", ["slurmlet", "slurmlet-operator"])
def test_lintian_finds_nothing(packages, package):
    # Built for a site and not uploaded to Debian, where there would be a bug to close.
    done = subprocess.run(
        ["lintian", "--allow-root", "--suppress-tags=initial-upload-closes-no-bugs",
         "--fail-on=error,warning,info", "--display-info", "--tag-display-limit=0",
         str(only(packages, f"{package}_*.deb"))],
        cwd=packages, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stdout + done.stderr


def test_files_have_their_owners_and_modes(looked_at):
    assert looked_at.owner(CONFIG) == ("0o644", "root:root")
    assert looked_at.owner("/etc/slurmlet") == ("0o755", "root:root")
    assert looked_at.owner(STATE) == ("0o750", "slurmlet:slurmlet")
    assert looked_at.owner("/usr/sbin/slurmlet") == ("0o755", "root:root")
    for name in ("/lib/systemd/system/slurmlet.service",
                 "/lib/systemd/system/slurmlet.socket",
                 "/lib/systemd/system/slurmlet-detach.path", "/lib/systemd/system/slurmlet-detach.service",
                 "/usr/lib/systemd/system-preset/80-slurmlet.preset",
                 "/usr/share/man/man8/slurmlet.8.gz", "/usr/share/man/man5/slurmlet.yaml.5.gz",
                 "/usr/share/bash-completion/completions/slurmlet",
                 "/usr/share/doc/slurmlet/copyright"):
        assert looked_at.owner(name) == ("0o644", "root:root"), name
    assert looked_at.owner("/etc/slurmlet/config.d") == ("0o755", "root:root")
    assert looked_at.file(CONFIG).read_text() == \
        (REPOSITORY / "packaging/first-config.yaml").read_text()
    # The file that it names.
    assert "/usr/share/doc/slurmlet/examples/config.yaml" in looked_at.file(CONFIG).read_text()
    assert looked_at.file("/usr/share/doc/slurmlet/examples/config.yaml").read_text() == \
        (REPOSITORY / "packaging/config.yaml").read_text()


def test_the_operator_is_a_package_of_its_own(installed, packages):
    names = lambda package: {line.split()[5].lstrip(".") for line in subprocess.run(  # noqa: E731
        ["dpkg-deb", "-c", str(only(packages, f"{package}_*.deb"))], check=True, capture_output=True,
        text=True).stdout.splitlines() if not line.endswith("/")}
    assert not [name for name in names("slurmlet") if "operator" in name and not name.startswith("/usr/share/doc/")]
    assert {"/usr/sbin/slurmlet-operator", "/lib/systemd/system/slurmlet-operator.service",
            "/usr/share/slurmlet-operator/operator.yaml", "/usr/share/man/man8/slurmlet-operator.8.gz"} <= names("slurmlet-operator")
    installed.dpkg("-i", packages=[only(packages, "slurmlet-operator_*.deb")])
    assert installed.owner("/etc/slurmlet/operator.yaml") == ("0o644", "root:root")
    assert installed.enabled("slurmlet-operator.service") == "disabled"
    # Each leaves the other's alone, and its own credential with nobody.
    installed.file("/etc/slurmlet/operator.kubeconfig").write_text("token")
    installed.file("/etc/slurmlet/bootstrap-token").write_text("token")
    installed.dpkg("--purge", "slurmlet")
    assert {name.name for name in installed.file("/etc/slurmlet").iterdir()} == {
        "operator.yaml", "operator.kubeconfig"}
    installed.dpkg("--purge", "slurmlet-operator")
    assert not installed.file("/etc/slurmlet").exists()


def test_the_user_owns_nothing_but_the_state_and_cannot_log_in(looked_at):
    account = looked_at.account("slurmlet")
    assert account[5] == STATE and account[6].endswith("/nologin")
    uid = int(account[2])
    owned = {name for name in looked_at.files()
             if looked_at.file(name).lstat().st_uid == uid}
    assert owned == {STATE}


def test_the_service_comes_up_at_boot_and_the_socket_does_not(looked_at):
    assert looked_at.enabled("slurmlet.service") == "enabled"
    assert looked_at.enabled("slurmlet.socket") == "disabled"
    assert looked_at.enabled("slurmlet-detach.path") == "disabled"
    # What systemd does when an image without a machine ID boots for the first time.
    looked_at.run("systemctl", "preset-all", "--preset-mode=enable-only")
    assert looked_at.enabled("slurmlet.service") == "enabled"
    assert looked_at.enabled("slurmlet.socket") == "disabled"


def test_the_program_runs_as_its_user(looked_at):
    assert looked_at.run("slurmlet", "version").stdout == f"slurmlet {VERSION}\n"
    node = looked_at.run("slurmlet", "print-node", "--nodename", "n1", user="slurmlet")
    assert (json.loads(node.stdout)["kind"], json.loads(node.stdout)["metadata"]["name"]) == ("Node", "n1")
    check = looked_at.run("slurmlet", "check", "--nodename", "n1", user="slurmlet", check=False)
    # There is no API server here, and that is what it says.
    assert check.returncode == 1, check.stdout + check.stderr
    assert CONFIG in check.stdout


def test_removal_keeps_state_and_configuration_alone(installed):
    installed.file(STATE + "/kubeconfig").write_text("identity")
    installed.dpkg("--remove", "slurmlet")
    # That the unit is enabled is configuration, too, and Debian keeps it in two places.
    assert installed.files() - installed.before - HELPERS == {
        "/etc/slurmlet", CONFIG, STATE, STATE + "/kubeconfig",
        "/etc/systemd/system/multi-user.target.wants/slurmlet.service",
        f"{HELPER}-enabled/slurmlet.service.dsh-also",
        f"{HELPER}-enabled/slurmlet.socket.dsh-also",
        f"{HELPER}-enabled/slurmlet-detach.path.dsh-also",
        f"{HELPER}-enabled/multi-user.target.wants/slurmlet.service"}
    assert installed.file(STATE + "/kubeconfig").read_text() == "identity"
    assert installed.owner(CONFIG) == ("0o644", "root:root")


def test_purge_leaves_nothing(installed):
    installed.file(STATE + "/pki").mkdir()
    installed.file("/var/lib/slurmlet-feed").mkdir()
    for name in ("config.d/10-site.yaml", "config.d/20-join.yaml", "bootstrap-token", "bootstrap-kubeconfig"):
        installed.file("/etc/slurmlet/" + name).touch()
    installed.dpkg("--purge", "slurmlet")
    assert installed.files() - installed.before - HELPERS == set()


@pytest.mark.parametrize("edit", ["", "logLevel: debug\n"])
def test_upgrade_from_a_conffile_asks_nothing_and_keeps_it(root, deb, scratch, edit):
    """As from 0.1.0, whose configuration of 200 lines people edited."""
    before = root.files()
    root.dpkg("-i", packages=[repacked(deb, scratch, "0.0.1-1", conffile="# as shipped\n")])
    mine = root.file(CONFIG)
    mine.write_text("# as shipped\n" + edit)
    root.dpkg("-i", packages=[deb])
    assert mine.read_text() == "# as shipped\n" + edit
    assert [one.name for one in mine.parent.iterdir() if one.is_file()] == ["config.yaml"]
    root.dpkg("--purge", "slurmlet")
    assert root.files() - before - HELPERS == set()


@pytest.mark.parametrize("new_example", [False, True])
def test_upgrade_and_downgrade_keep_identity_state_and_configuration(installed, deb, scratch,
                                                                     new_example):
    newer = repacked(deb, scratch, "99.0-1", "# another example\n" if new_example else None)
    mine = installed.file(CONFIG)
    mine.write_text(mine.read_text() + "logLevel: debug\n")
    changed = mine.read_text()
    installed.file(STATE + "/kubeconfig").write_text("identity")
    uid = installed.account("slurmlet")[2]

    def kept():
        assert mine.read_text() == changed
        assert installed.owner(CONFIG) == ("0o644", "root:root")
        assert installed.file(STATE + "/kubeconfig").read_text() == "identity"
        assert installed.owner(STATE) == ("0o750", "slurmlet:slurmlet")
        assert installed.account("slurmlet")[2] == uid
        assert installed.enabled("slurmlet.service") == "enabled"

    installed.dpkg("-i", packages=[newer])
    assert "99.0-1" in installed.run("dpkg-query", "-W", "slurmlet").stdout
    kept()
    installed.dpkg("-i", packages=[deb])
    assert "99.0-1" not in installed.run("dpkg-query", "-W", "slurmlet").stdout
    kept()


def test_a_unit_that_was_disabled_stays_disabled(installed, deb, scratch):
    installed.run("systemctl", "disable", "slurmlet.service")
    installed.dpkg("-i", packages=[repacked(deb, scratch, "99.0-2")])
    assert installed.enabled("slurmlet.service") == "disabled"
