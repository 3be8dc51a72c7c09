"""The real control plane outside, and machines that boot our package inside. See
docs/contributors/testing-machine.md."""
import itertools
import os
import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lab"))
from harness.api import repository  # noqa: E402
from harness.control_plane import BINARY as CONTROL_PLANE, ControlPlane  # noqa: E402
from harness.service_account import apply  # noqa: E402
from hpc_node import HpcNode  # noqa: E402
from machine import Machine, Workshop, why_not  # noqa: E402

ROOT = repository() / "build/machine-root"
PACKAGES = repository() / "build/machine-packages"
PACKAGE_IN_IMAGE = "opt/slurmlet.deb"


@pytest.fixture(scope="session")
def work():
    reason = why_not()
    if reason:
        pytest.skip(reason)
    for needed in (ROOT, CONTROL_PLANE):
        assert needed.exists(), f"{needed} is missing; run ./dev machine"
    path = pathlib.Path(tempfile.mkdtemp(prefix="mt", dir="/tmp"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def package():
    """Our DEB. Another one may be tested: SLURMLET_DEB=FILE."""
    if "SLURMLET_DEB" in os.environ:
        return pathlib.Path(os.environ["SLURMLET_DEB"])
    found = sorted(PACKAGES.glob("slurmlet_*.deb"), key=lambda path: path.stat().st_mtime)
    assert found, f"no package in {PACKAGES}; run ./dev machine"
    return found[-1]


@pytest.fixture(scope="session")
def package_directory(package):
    """With the operator's DEB beside it."""
    return package.parent


@pytest.fixture(scope="session")
def rpm():
    """Our RPM, made for this distribution (docs/contributors/building.md): SLURMLET_RPM=FILE, or the one that
    ./dev package left."""
    if "SLURMLET_RPM" in os.environ:
        return pathlib.Path(os.environ["SLURMLET_RPM"])
    found = list((repository() / "build/packages").glob("slurmlet-*.rpm"))
    if not found:
        pytest.skip("no RPM is built; ./dev package rpm --nocheck")
    return found[0]


@pytest.fixture(scope="session")
def plane(work):
    """A cluster in which only our own manifests let nodes have certificates."""
    with ControlPlane(work / "cp", "--audit", "--no-auto-approve") as running:
        for manifest in ("node-bootstrapper.yaml", "approve-client-renewals.yaml",
                         "approve-client-csrs.yaml"):
            apply(running, repository() / "deploy/rbac" / manifest)
        yield running


@pytest.fixture(scope="session")
def workshop(work):
    made = Workshop(work / "workshop")
    yield made
    made.close()


@pytest.fixture(scope="session")
def bare():
    """A root file system without slurmlet."""
    return [ROOT]


@pytest.fixture(scope="session")
def image(workshop, bare, package):
    """A root file system with our package installed."""
    return workshop.image("image", bare, ["dpkg", "--install", "/" + PACKAGE_IN_IMAGE],
                          files=[(package, PACKAGE_IN_IMAGE)])


@pytest.fixture(scope="session")
def rpm_image(workshop, bare, rpm):
    """A root file system with our RPM installed."""
    return workshop.image("rpm-image", bare, rpms=[rpm])


_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def new_node(request, plane, workshop, work):
    """make(below): a machine that is off, with a name of its own."""
    made = []

    def make(below):
        name = f"hpc-{next(_numbers)}"
        port = plane.admin.port
        made.append(HpcNode(plane, Machine(workshop, below, work / name, port), name))
        return made[-1]
    yield make
    for one in made:
        try:
            if getattr(request.module, "any_failed", False):
                _tell(one)
        finally:
            one.machine.remove()


def _tell(node):
    print(f"--- {node.name}: console ---\n{node.machine.console()[-3000:]}")
    for unit in ("slurmlet", "slurmd", "slurmctld", "munge", "cloud-final"):
        try:
            print(f"--- {node.name}: {unit} ---\n{node.machine.journal('-u', unit)[-4000:]}")
        except RuntimeError as error:
            print(error)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    if outcome.get_result().failed:
        item.module.any_failed = True


@pytest.fixture
def timing(record_property):
    """Records a promise's real time; shown with `-rA` and in JUnit reports."""
    def record(what, seconds):
        record_property(what, round(seconds, 3))
        print(f"{what}: {seconds:.2f} s")
    return record
