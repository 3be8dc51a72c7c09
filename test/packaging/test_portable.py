"""The portable build (./dev portable): what the programs need, where they run, what brings them there.

That arm64 and amd64 register a Node on a real API server: ./dev test runs system tests with them.
"""
import json
import re
import subprocess
import tarfile

import pytest

from built import only
from roots import REPOSITORY

PORTABLE = REPOSITORY / "build/portable"
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
PROGRAMS = ["slurmlet", "slurmlet-operator"]
OLDEST_GLIBC = (2, 28)
# What glibc 2.28 consists of.
OF_GLIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libresolv.so.2",
            "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
LARGEST = 6.5 * 10 ** 6
RELEASES = {"Debian 11": "build/portable-roots/debian-11", "Debian 12": "build/packaging-root",
            "Debian 13": "build/slurm-24.11", "Debian 14": "build/slurm-26.05"}


def output(*command):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


@pytest.fixture(params=MACHINES)
def arch(request):
    return request.param


@pytest.fixture(params=PROGRAMS)
def program(request, arch):
    return PORTABLE / f"build-{arch}" / request.param


def test_needs_an_old_glibc_and_nothing_else(program):
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", program)))
    assert "libc.so.6" in needed and needed <= OF_GLIBC
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", output("readelf", "-V", program))
    assert versions
    assert max((int(major), int(minor)) for major, minor in versions) <= OLDEST_GLIBC


def test_is_for_its_machine_and_hardened(program, arch):
    head, dynamic = output("readelf", "-h", program), output("readelf", "-d", program)
    assert {"amd64": "X86-64", "arm64": "AArch64"}[arch] in head
    assert re.search(r"Type: +DYN", head), "position independent"
    assert "GNU_RELRO" in output("readelf", "-lW", program)
    assert "BIND_NOW" in dynamic or re.search(r"FLAGS_1.*NOW", dynamic)
    assert ".symtab" not in output("readelf", "-SW", program), "stripped"


def test_checks_its_stack():
    """Of amd64, whose canary is at a fixed place; both are compiled with the same flags."""
    code = output("objdump", "-d", "--no-show-raw-insn", PORTABLE / "build-amd64/slurmlet")
    assert code.count("%fs:0x28") > 500


def test_is_small(program):
    assert program.stat().st_size <= LARGEST


def test_names_no_directory_of_its_build(program):
    assert str(REPOSITORY).encode() not in program.read_bytes()


@pytest.mark.parametrize("release", RELEASES)
def test_runs_on(base, release):
    root = REPOSITORY / RELEASES[release]

    def run(*command):
        return subprocess.run(
            ["unshare", "--mount", "sh", "-ec",
             'mount --bind "$2" "$1/tmp"; mount -t proc proc "$1/proc"; r=$1; shift 2; exec chroot "$r" "$@"',
             "sh", str(root), str(PORTABLE / "build-amd64"), *command],
            capture_output=True, text=True, check=True, timeout=60,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}).stdout
    assert run("/tmp/slurmlet", "version").startswith("slurmlet ")
    assert json.loads(run("/tmp/slurmlet", "print-node", "--nodename", "n1"))["metadata"]["name"] == "n1"
    assert "--kubeconfig" in run("/tmp/slurmlet-operator", "--help")


def test_arm64_runs(base):
    def run(*command):
        return output(REPOSITORY / "test/packaging/arm64.sh", *command)
    assert run("version").startswith("slurmlet ")
    node = json.loads(run("print-node", "--nodename", "n1"))
    assert node["metadata"]["labels"]["kubernetes.io/arch"] == "arm64"


def test_tarball_is_the_whole_installation(arch):
    tarball = only(PORTABLE, f"slurmlet-*-linux-{arch}.tar.gz")
    with tarfile.open(tarball) as archive:
        members = {each.name: each for each in archive.getmembers()}
        packed = archive.extractfile("usr/sbin/slurmlet").read()
    assert packed == (PORTABLE / f"build-{arch}/slurmlet").read_bytes()
    assert {"usr/sbin/slurmlet-operator", "usr/lib/systemd/system/slurmlet.service",
            "usr/lib/systemd/system/slurmlet-operator.service", "usr/lib/sysusers.d/slurmlet.conf",
            "usr/share/man/man8/slurmlet.8", "usr/share/slurmlet/config.yaml",
            "usr/share/slurmlet-operator/operator.yaml",
            "usr/share/doc/slurmlet/LICENSE"} <= members.keys()
    assert not any(name.startswith("etc") for name in members), "unpacked again, it changes no setting"
    assert all(each.uid == each.gid == 0 and not each.mode & 0o022 for each in members.values()
               if not each.issym())


def test_bill_of_materials_names_each_library(arch):
    sbom = json.loads(only(PORTABLE, f"slurmlet-*-linux-{arch}.spdx.json").read_text())
    versions = {each["name"]: each["versionInfo"] for each in sbom["packages"]}
    assert {"openssl", "curl", "libyaml", "fmtlib", "spdlog", "nlohmann-json3", "cpp-httplib",
            "ziglang", "slurmlet"} == versions.keys()
    for name in versions.keys() - {"slurmlet"}:
        assert versions[name] == (PORTABLE / f"sources/{name}.version").read_text().strip()


def test_checksums_fit():
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=PORTABLE, check=True)


def test_packages_of_both_architectures_need_glibc_alone(arch):
    for name in PROGRAMS:
        deb = only(PORTABLE, f"{name}_*_{arch}.deb")
        fields = dict(line.split(": ", 1) for line in
                      output("dpkg-deb", "-f", deb, "Architecture", "Depends").splitlines())
        assert fields["Architecture"] == arch
        assert "libc6 (>= 2.28)" in fields["Depends"] and "libssl" not in fields["Depends"]
        rpm = only(PORTABLE, f"{name}-[0-9]*.{MACHINES[arch]}.rpm")
        libraries = re.findall(r"^(lib\S+?|ld-\S+?)\(", output("rpm", "-qp", "--requires", rpm), re.M)
        assert libraries and set(libraries) <= OF_GLIBC


def test_deb_installs_and_goes(root):
    root.dpkg("-i", packages=[only(PORTABLE, "slurmlet_*_amd64.deb")])
    assert root.enabled("slurmlet.service") == "enabled"
    assert root.run("slurmlet", "version", user="slurmlet").stdout.startswith("slurmlet ")
    root.dpkg("-P", "slurmlet")
    assert not root.file("/usr/sbin/slurmlet").exists() and not root.file("/etc/slurmlet").exists()


def test_rpm_installs_and_goes(root):
    root.rpm("-i", only(PORTABLE, "slurmlet-[0-9]*.x86_64.rpm"))
    assert root.enabled("slurmlet.service") == "enabled"
    assert root.run("slurmlet", "version", user="slurmlet").stdout.startswith("slurmlet ")
    root.rpm("-e", "slurmlet")
    assert not root.file("/usr/sbin/slurmlet").exists() and not root.file("/etc/slurmlet").exists()
