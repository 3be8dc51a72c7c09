"""What `sinfo` says beside the state, who is queried whatever the environment says, and queries that
fail for a local cause, with each release of Slurm."""
import os
import pathlib

import pytest

from harness.api import condition

DRAIN = "SlurmNodeStateDrain"
IDLE = "SlurmNodeStateIdle"


@pytest.fixture(scope="module", name="slurm")
def slurm_of_release(own_slurm, slurm_root):
    return own_slurm(nodes=["nid1"], cpus=2, cluster_name="Santis", root=slurm_root,
                     node_line_extra="Features=bios_a,bios_b", conf_lines=["MessageTimeout=2"])


def node_of(slurm):
    return slurm.spec.nodes[0]


def variant(slurm, name, change):
    """A slurm.conf beside that of the cluster; its lines are change()d."""
    path = pathlib.Path(slurm.conf_path).with_name(name)
    path.write_text("".join(change(line) for line in
                            pathlib.Path(slurm.conf_path).read_text().splitlines(keepends=True)))
    return str(path)


def rig_with(rig_of, slurm, conf, **settings):
    """A daemon that reads that slurm.conf, and not the one that the running slurmd does."""
    rig = rig_of(slurm)
    rig.environment["SLURM_CONF"] = conf
    rig.configure(slurm={"nodeName": node_of(slurm), **settings})
    return rig


def without(line, key):
    return "" if line.startswith(key + "=") else line


def annotations(node):
    return {key.split("/")[1]: value for key, value in node["metadata"]["annotations"].items()
            if key.startswith("slurmlet.io/")}


def test_features_comment_and_reservation(slurm, rig_of):
    rig = rig_of(slurm)
    # Each would turn the query elsewhere or give it another credential.
    rig.environment.update(SLURM_JWT="x", SLURM_CLUSTERS="other", SLURM_SACK_KEY="/nonexistent",
                           SCONTROL_ALL="no")
    rig.start_and_know()
    assert rig.node()["metadata"]["labels"]["slurmlet.io/slurm-cluster"] == "santis"
    name = node_of(slurm)
    slurm.command("scontrol", "update", f"nodename={name}", "activefeatures=bios_b",
                  "comment=rack 7 | see wiki")
    slurm.command("scontrol", "create", "reservation", "reservationname=repair", "starttime=now",
                  "duration=60", "users=root", f"nodes={name}")
    rig.wait(lambda node: annotations(node).get("slurm-comment") == "rack 7 | see wiki" and
             condition(node, "SlurmNodeStateReserved").get("status") == "True")
    node = rig.node()
    features = {key.split("/")[1] for key in node["metadata"]["labels"]
                if key.startswith("feature.slurmlet.io/")}
    assert features == {"bios_b"}
    told = annotations(node)
    assert told["slurm-features"] == "bios_a,bios_b"
    # sinfo of 22.05 has no such column.
    assert told.get("slurm-reservation") == ("repair" if slurm.release >= (23, 2) else None)
    slurm.command("scontrol", "delete", "reservation", "repair")
    rig.stop()


def test_of_a_federation_only_this_cluster_is_queried(slurm, rig_of):
    """No slurmdbd here, so no federation: but with fed_display clients ask for its members first."""
    conf = variant(slurm, "federation.conf", lambda line:
                   "FederationParameters=fed_display\n" + line if line.startswith("ClusterName=")
                   else line)
    slurm.sdiag(reset=True)
    slurm.command("sinfo", "-n", node_of(slurm), environment={**slurm.own_env(), "SLURM_CONF": conf})
    assert "REQUEST_FED_INFO" in slurm.sdiag(reset=True)["by_type"], "or this test cannot fail"
    rig = rig_with(rig_of, slurm, conf)
    rig.start(ready=False)
    rig.wait_condition(IDLE, "True")
    queries = slurm.sdiag()["by_type"]
    assert "REQUEST_NODE_INFO" in queries and "REQUEST_FED_INFO" not in queries
    rig.stop()


def test_includes_by_cluster_name(slurm, rig_of):
    rest = variant(slurm, "santis-rest.conf", lambda line: without(line, "ClusterName"))
    top = pathlib.Path(rest).with_name("top.conf")
    top.write_text(f"ClusterName=SANTIS\nInclude {top.parent}/%c-rest.conf\n")
    rig = rig_with(rig_of, slurm, str(top))
    rig.start(ready=False)
    rig.wait_condition(IDLE, "True")
    assert f"; {top})" in rig.log(), "the file that was read"
    rig.stop()


def test_auth_slurm_without_a_socket(slurm, rig_of):
    if slurm.release < (23, 11):
        pytest.skip("auth/slurm is of 23.11")
    assert not os.path.exists("/run/slurm/sack.socket"), "this machine's own"
    conf = variant(slurm, "sack.conf", lambda line: "AuthType=auth/slurm\nCredType=cred/slurm\n"
                   if line.startswith("AuthType=") else without(line, "AuthInfo"))
    rig = rig_with(rig_of, slurm, conf)
    rig.start(ready=False)
    rig.wait_condition(IDLE, "Unknown", "SackUnavailable")
    rig.stop()
