"""The NodeName that slurmd takes without -N is the one that the Node shows: real slurmds, each on a
host name and with an /etc/hosts of its own."""
import os

import pytest

from harness.api import condition, slurm_annotation, slurm_states
from harness.daemon import BINARY

# Host name, more of /etc/hosts, {NodeName: NodeHostname ("" = none)}, what slurmd takes.
HOSTS = {
    "short": ("cn01.example.org", "127.0.0.1 cn01.example.org\n", {"cn01": ""}, "cn01"),
    "full": ("cn01.example.org", "127.0.0.1 cn01.example.org\n", {"n9": "cn01.example.org"},
             "n9"),
    "localhost": ("cn01", "127.0.0.1 cn01\n", {"localhost": ""}, "localhost"),
    "NodeHostname=localhost": ("cn01", "127.0.0.1 cn01\n", {"n1": "localhost"}, "n1"),
    "alias": ("cn01", "127.0.0.1 x.example.org cn01 nid7\n", {"nid7": ""}, "nid7"),
    "first alias": ("cn01", "127.0.0.1 x.example.org cn01 nid7 nid6\n", {"nid6": "", "nid7": ""},
                    "nid7"),
    "canonical name": ("cn01", "127.0.0.1 CN01 cn01\n", {"CN01": ""}, "CN01"),
}


@pytest.mark.parametrize("case", HOSTS)
def test_it_is_the_one_that_slurmd_takes(own_slurm, rig_of, slurm_root, case):
    name, hosts, nodes, taken = HOSTS[case]
    others = [f"NodeName={node} NodeAddr=127.0.0.1 CPUs=1" for node in nodes if node != taken]
    slurm = own_slurm(nodes=[taken], cpus=os.cpu_count(), root=slurm_root, conf_lines=others,
                      hosts={taken: [name, hosts, nodes[taken]]})
    told = slurm.command("scontrol", "show", "slurmd",
                         environment=slurm.own_env(SLURMD_NODENAME=taken)).stdout
    assert taken in [line.split("=")[1].strip() for line in told.splitlines()
                     if line.startswith("Hostname")], told
    rig = rig_of(slurm)
    inside = rig.directory / "slurmlet-inside"
    inside.write_text(f'#!/bin/sh\nexec nsenter --mount --uts --target {slurm.pid(f"slurmd:{taken}")} '
                      f'{BINARY} "$@"\n')
    inside.chmod(0o755)
    rig.start_and_know(program=inside)
    node = rig.node()
    assert slurm_annotation(node, "node") == taken
    assert slurm_states(node) == {"Idle"}
    assert condition(node, "SlurmdReady")["status"] == "True"
