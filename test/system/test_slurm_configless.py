"""Configless Slurm: slurmd fetches slurm.conf from slurmctld (--conf-server)."""
import pathlib

from harness.api import condition, slurm_annotation, slurm_states
from harness.daemon import BINARY


def test_configless_node_is_found(own_slurm, rig_of, slurm_root):
    """No slurm.conf but the one that slurmd fetched: node, cluster and slurmd are found."""
    slurm = own_slurm(nodes=["cl1"], cpus=2, root=slurm_root, configless=True, cluster_name="eiger")
    rig = rig_of(slurm)
    rig.environment = {}
    # The tests' own cluster runs its slurmd on this machine too, and says its name (-N).
    rig.configure(slurm={"nodeName": "cl1"})
    # slurmd has a /run of its own, where it left the configuration; the daemon shares it.
    inside = rig.directory / "in-slurmds-run"
    inside.write_text(f'#!/bin/sh\nexec nsenter --mount --target {slurm.pid("slurmd")} '
                      f'{BINARY} "$@"\n')
    inside.chmod(0o755)
    rig.start_and_know(program=inside)
    node = rig.node()
    assert slurm_annotation(node, "node") == "cl1"
    assert node["metadata"]["labels"]["slurmlet.io/slurm-cluster"] == "eiger"
    assert condition(node, "SlurmdReady")["status"] == "True"
    assert slurm_states(node) == {"Idle"}
    assert not pathlib.Path("/run/slurm/conf").exists()
    slurm.daemon("kill", "slurmd")
    rig.wait_condition("SlurmdReady", "False", "SlurmdNotRunning")
    slurm.down()  # its slurmd says no name: the next one would not be told from it
