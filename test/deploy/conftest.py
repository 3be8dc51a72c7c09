"""A real API server for what ships for the cluster, once for all tests here."""
import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lab"))
from harness.control_plane import BINARY as CONTROL_PLANE, ControlPlane  # noqa: E402


@pytest.fixture(scope="session")
def plane():
    assert CONTROL_PLANE.exists(), f"{CONTROL_PLANE} is missing; run ./dev system"
    path = pathlib.Path(tempfile.mkdtemp(prefix="dt", dir="/tmp"))
    with ControlPlane(path / "cp") as running:
        yield running
    shutil.rmtree(path, ignore_errors=True)
