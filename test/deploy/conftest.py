"""A real API server for what ships for the cluster, once for all tests here."""
import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lab"))
from harness.control_plane import BINARY as CONTROL_PLANE, RELEASE, ControlPlane  # noqa: E402

# As the head of deploy/admission/daemonsets.yaml says.
BEFORE_1_36 = ["--apiserver-arg=--feature-gates=MutatingAdmissionPolicy=true",
               "--apiserver-arg=--runtime-config=admissionregistration.k8s.io/v1beta1=true"]


@pytest.fixture(scope="session")
def plane():
    assert CONTROL_PLANE.exists(), f"{CONTROL_PLANE} is missing; run ./dev system"
    path = pathlib.Path(tempfile.mkdtemp(prefix="dt", dir="/tmp"))
    with ControlPlane(path / "cp", *(BEFORE_1_36 if RELEASE == "1.35" else [])) as running:
        yield running
    shutil.rmtree(path, ignore_errors=True)
