"""The real API server, the real Slurm and the real daemon, once each for the whole run, or for each
worker of a parallel one (./dev system). See test/lab/harness/rig.py for what a test gets: a Rig is one
Kubernetes node of its own."""
import contextlib
import itertools
import os
import pathlib
import shutil
import sys
import tempfile
import warnings

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lab"))
from harness import parallel  # noqa: E402
from harness.control_plane import BINARY as CONTROL_PLANE, ControlPlane  # noqa: E402
from harness.daemon import BINARY as SLURMLET  # noqa: E402
from harness.operator_site import Machines, operator_account  # noqa: E402
from harness.rig import Rig  # noqa: E402
from slurmcluster import SlurmCluster  # noqa: E402

SLURM_NODE = "nid000001"
_own_numbers = itertools.count(1)
UNPRIVILEGED = "nobody" if os.geteuid() == 0 else None
BUILD = pathlib.Path(__file__).resolve().parent.parent.parent / "build"
OTHER_SLURMS = ["24.11", "26.05"]


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes more than half a minute")
    config.addinivalue_line("markers", "alone: measures what the machine or the daemon uses, so that "
                                       "no other test may run at that time")


def pytest_collection_modifyitems(items):
    parallel.longest_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return parallel.scheduler(config, log)


@pytest.fixture(scope="session")
def work():
    """A directory with a short name, for unix sockets, that every user can enter."""
    for program in (SLURMLET, CONTROL_PLANE):
        assert program.exists(), f"{program} is missing; run ./dev system"
    path = pathlib.Path(tempfile.mkdtemp(prefix="st", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def plane(work):
    with ControlPlane(work / "cp", "--audit") as running:
        yield running


@pytest.fixture(scope="session")
def slurm(work):
    cluster = SlurmCluster(str(work / "sl"))
    with cluster:
        # Two CPUs, so that the node can be MIXED; slurmd is told not to mind.
        yield cluster.up(nodes=[SLURM_NODE], cpus=max(2, os.cpu_count()), gpus="a100:4",
                         cluster_name="alps")


def slurm_root_of(release):
    """Where the programs of a release are, for a cluster's `root`; "own" is the machine's."""
    root = BUILD / f"slurm-{release}"
    assert release == "own" or root.exists(), \
        f"{root} is missing; run ./dev system or test/lab/slurmcluster/root.sh {release}"
    return "" if release == "own" else str(root)


@pytest.fixture(scope="module", params=["own", *OTHER_SLURMS])
def slurm_root(request):
    """Of a cluster of each release."""
    return slurm_root_of(request.param)


@pytest.fixture(scope="module", params=OTHER_SLURMS)
def other_slurm_root(request):
    return slurm_root_of(request.param)


@pytest.fixture(scope="module")
def own_slurm(work):
    """start(**fields): a Slurm cluster of the file's own, as ClusterSpec describes it."""
    with contextlib.ExitStack() as at_end:
        def start(**fields):
            cluster = SlurmCluster(str(work / f"o{next(_own_numbers)}"))
            at_end.enter_context(cluster)
            return cluster.up(**fields)
        yield start


@pytest.fixture(scope="module")
def account(plane):
    """slurmlet-operator's, with the rights of deploy/operator."""
    return operator_account(plane)


@pytest.fixture(scope="module")
def machines(plane):
    """Of Cluster API, by its own CRD."""
    one = Machines(plane)
    yield one
    one.end()


@pytest.fixture
def idle_slurm(slurm):
    """The Slurm cluster with its node idle, before the test and after it."""
    slurm.reset(SLURM_NODE)
    yield slurm
    slurm.reset(SLURM_NODE)


@pytest.fixture(scope="session")
def _rigs(plane, slurm, work):
    numbers = itertools.count(1)

    def make(user=None):
        # slurmctld 22.05 may have died of what an earlier test asked (docs/explanation/slurm-state.md, GresUsed).
        if slurm.pid("slurmctld") is None:
            warnings.warn("slurmctld had died and was started again")
            slurm.reset(SLURM_NODE)
        name = f"hpc-{next(numbers)}"
        return Rig(plane, slurm, name, work / name, user)
    return make


def _end(rig, failed):
    log = rig.directory / "daemon" / "slurmlet.log"
    if failed and log.exists():
        print(f"--- log of {rig.name} ---\n{rig.log()[-6000:]}")
    rig.clean()


@pytest.fixture
def rig(request, _rigs, slurm):
    """A node for one test; its daemon is not started yet."""
    one = _rigs()
    yield one
    _end(one, getattr(request.node, "failed", True))


@pytest.fixture(scope="session")
def making(slurm, work):
    """making(failed): a context whose value is make(kind, plane), a node with a Rig of that kind on
    any control plane. At its end the nodes end; their logs are printed if failed() says so."""
    @contextlib.contextmanager
    def context(failed):
        made = []

        def make(kind, plane):
            name = f"own-{next(_own_numbers)}"
            made.append(kind(plane, slurm, name, work / name))
            return made[-1]
        try:
            yield make
        finally:
            for one in made:
                _end(one, failed())
    return context


@pytest.fixture
def bootstrap_rig(request, making):
    """make(kind, plane) for the nodes of one test."""
    with making(lambda: getattr(request.node, "failed", True)) as make:
        yield make


@pytest.fixture(scope="module")
def shared_rig(request, _rigs):
    """A node for all tests of one file, whose daemon runs unprivileged and knows Slurm's state."""
    one = _rigs(UNPRIVILEGED)
    getattr(request.module, "prepare", lambda _: None)(one)
    one.start_seconds = one.start_and_know()
    yield one
    _end(one, getattr(request.module, "any_failed", False))


@pytest.fixture(scope="module")
def rig_of(request, plane, work):
    """make(slurm, user=None): a node for the tests of one file, mirrored from that cluster."""
    made = []

    def make(slurm, user=None):
        name = f"own-{next(_own_numbers)}"
        made.append(Rig(plane, slurm, name, work / name, user))
        return made[-1]
    yield make
    for one in made:
        _end(one, getattr(request.module, "any_failed", False))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    report = outcome.get_result()
    if report.when == "call":
        item.failed = report.failed
    if report.failed:
        item.module.any_failed = True


@pytest.fixture
def timing(record_property):
    """Records a promise's real time; shown with `-rA` and in JUnit reports."""
    def record(what, seconds):
        record_property(what, round(seconds, 3))
        print(f"{what}: {seconds:.2f} s")
    return record
