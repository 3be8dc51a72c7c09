"""GPUs that Slurm has and the machine has lost: the device files that gres.conf names."""
import os

import pytest

from harness.api import condition

NODE = "nid000001"
GPUS = 4


def prepare(rig):
    """The machine is looked at with each report of the status."""
    rig.configure(kubernetes={"statusReportInterval": "10s"})


@pytest.fixture(autouse=True)
def all_gpus_again(slurm):
    yield
    for index in range(GPUS):
        path = device(slurm, index)
        if not os.path.lexists(path):
            os.symlink("/dev/null", path)


def device(slurm, index):
    return slurm.layout.at("dev", f"nvidia{index}")


def test_every_gpu_is_there(shared_rig):
    found = shared_rig.wait_condition("GPUHealthy", "True")
    assert str(GPUS) in found["message"]


def test_missing_gpu_is_named_and_comes_back(shared_rig, slurm):
    shared_rig.wait_condition("GPUHealthy", "True")
    os.unlink(device(slurm, 2))
    found = shared_rig.wait_condition("GPUHealthy", "False", "GPUMissing")
    assert device(slurm, 2) in found["message"]
    for index in {0, 1, 3}:
        assert device(slurm, index) not in found["message"]
    node = shared_rig.node()
    # Slurm goes on counting it, and so do we; only the condition says what is wrong.
    assert node["status"]["capacity"]["nvidia.com/gpu"] == str(GPUS)
    assert condition(node, "Ready")["status"] == "True"
    os.symlink("/dev/null", device(slurm, 2))
    shared_rig.wait_condition("GPUHealthy", "True")


def test_several_missing_gpus_are_all_named(shared_rig, slurm):
    for index in (0, 3):
        os.unlink(device(slurm, index))
    found = shared_rig.wait_condition("GPUHealthy", "False", "GPUMissing")
    shared_rig.wait(lambda node: all(
        device(slurm, index) in condition(node, "GPUHealthy")["message"] for index in (0, 3)))
    assert found["reason"] == "GPUMissing"
