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


def test_missing_gpus_are_named_and_come_back(shared_rig, slurm):
    assert str(GPUS) in shared_rig.wait_condition("GPUHealthy", "True")["message"]
    for missing in (0, 3):
        os.unlink(device(slurm, missing))
    shared_rig.wait_condition("GPUHealthy", "False", "GPUMissing")
    shared_rig.wait(lambda node: [index for index in range(GPUS) if device(slurm, index) in condition(
        node, "GPUHealthy")["message"]] == [0, 3])
    node = shared_rig.node()
    # Slurm goes on counting it, and so do we; only the condition says what is wrong.
    assert node["status"]["capacity"]["nvidia.com/gpu"] == str(GPUS)
    assert condition(node, "Ready")["status"] == "True"
    for missing in (0, 3):
        os.symlink("/dev/null", device(slurm, missing))
    shared_rig.wait_condition("GPUHealthy", "True")
