"""Builds both packages once for the whole run, without their unit tests (./dev test has run them)."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from built import build, only  # noqa: E402
from roots import HERE, REPOSITORY, Root  # noqa: E402


def pytest_collection_modifyitems(items):
    if os.geteuid() != 0:
        for item in items:
            if item.path.parent == HERE and "base" in item.fixturenames:
                item.add_marker(pytest.mark.skip(reason="installing packages needs root"))


@pytest.fixture(scope="session")
def packages():
    """The directory with both packages; SLURMLET_PACKAGES names one with packages built before."""
    if "SLURMLET_PACKAGES" in os.environ:
        return pathlib.Path(os.environ["SLURMLET_PACKAGES"])
    into = REPOSITORY / "build/packages"
    for kind in ("deb", "rpm"):
        build(kind, into, REPOSITORY / "build/package")
    return into


@pytest.fixture(scope="session")
def deb(packages):
    return only(packages, "slurmlet_*.deb")


@pytest.fixture(scope="session")
def rpm(packages):
    return only(packages, "slurmlet-[0-9]*.rpm")


@pytest.fixture(scope="session")
def scratch():
    """A directory that goes with the run; roots are too large to be kept."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="packaging-test-", dir=REPOSITORY / "build"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="session")
def base():
    subprocess.run([str(HERE / "root.sh")], check=True)


@pytest.fixture
def root(base, scratch):
    """For one test that changes it."""
    made = Root(scratch / "root")
    yield made
    made.discard()


@pytest.fixture(scope="module")
def shared_root(base, scratch):
    """For all tests of a file that only look."""
    made = Root(scratch / "shared-root")
    yield made
    made.discard()


@pytest.fixture(scope="session")
def unpacked(packages, scratch):
    """{package: the directory with what its DEB contains}"""
    for name in ("slurmlet", "slurmlet-operator"):
        subprocess.run(["dpkg", "-x", str(only(packages, f"{name}_*.deb")), str(scratch / f"deb-{name}")], check=True)
    return {name: scratch / f"deb-{name}" for name in ("slurmlet", "slurmlet-operator")}


@pytest.fixture(scope="session")
def program(unpacked):
    """The packaged binary, to be run on this machine."""
    return unpacked["slurmlet"] / "usr/sbin/slurmlet"


@pytest.fixture(scope="session")
def operator(unpacked):
    """The same of slurmlet-operator."""
    return unpacked["slurmlet-operator"] / "usr/sbin/slurmlet-operator"
