"""What users of the kubelet set: taints, two addresses, labels that come and go, drop-in files."""
import json

HEAD = {"apiVersion": "slurmlet.io/v1alpha1", "kind": "SlurmletConfiguration"}


def internal_ips(node):
    return [one["address"] for one in node["status"]["addresses"] if one["type"] == "InternalIP"]


def drop_in(rig, name, **groups):
    directory = rig.config_path.with_suffix(".d")
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(json.dumps({**HEAD, **groups}))


def test_taints_are_in_the_created_node_and_not_defended(rig):
    rig.configure(node={"taints": "site.example/hpc=yes:NoSchedule,site.example/startup:NoExecute"})
    rig.start()
    taints = rig.node()["spec"]["taints"]
    assert {"key": "site.example/hpc", "value": "yes", "effect": "NoSchedule"} in taints
    assert {"key": "site.example/startup", "effect": "NoExecute"} in taints
    # A controller takes a startup taint off: that is what it is for.
    rig.admin.merge(rig.path, {"spec": {"taints": [
        one for one in taints if one["key"] != "site.example/startup"]}})
    rig.restart()
    assert "lacks the taint" not in rig.log()


def test_two_addresses(rig):
    rig.configure(node={"ip": "192.0.2.7,2001:db8::7"})
    rig.start()
    assert internal_ips(rig.node()) == ["192.0.2.7", "2001:db8::7"]
    rig.stop()
    rig.configure(node={"ip": "2001:db8::8"})
    rig.start()
    rig.wait(lambda node: internal_ips(node) == ["2001:db8::8"])


def test_labels_that_leave_the_configuration_leave_the_node(rig):
    rig.configure(node={"labels": {"site.example/rack": "r7", "site.example/row": "2"}})
    rig.start()
    rig.admin.merge(rig.path, {"metadata": {"labels": {"site.example/theirs": "kept"}}})
    rig.stop()
    rig.configure(node={"labels": {"site.example/rack": "r7"}})
    rig.start()
    labels = rig.wait(lambda node: "site.example/row" not in node["metadata"]["labels"])[
        "metadata"]["labels"]
    assert labels["site.example/rack"] == "r7" and labels["site.example/theirs"] == "kept"


def test_drop_ins_in_the_order_of_their_names(rig):
    rig.configure(node={"labels": {"site.example/rack": "r1"}})
    drop_in(rig, "20-b.yaml", node={"labels": {"site.example/row": "b"}})
    drop_in(rig, "10-a.yaml", node={"labels": {"site.example/row": "a", "site.example/hall": "a"}})
    rig.start()
    labels = rig.node()["metadata"]["labels"]
    assert {key: labels[f"site.example/{key}"] for key in ("rack", "row", "hall")} == {
        "rack": "r1", "row": "b", "hall": "a"}


def test_foul_text_of_slurm_is_published_plain_and_short(rig, idle_slurm):
    foul = "dimm\x1b[31m\u009b2J\u202etxt\u2066 " + "y" * 60000
    rig.start_and_know()
    idle_slurm.set_state("nid000001", "drained", foul)
    rig.wait_condition("SlurmNodeStateDrain", "True")
    node = rig.node()
    texts = [one["message"] for one in node["status"]["conditions"]]
    texts += [value for key, value in node["metadata"]["annotations"].items()
              if key.startswith("slurmlet.io/")]
    assert any("dimm [31m 2J txt yyyy" in text for text in texts)
    for text in texts:
        assert len(text.encode()) <= 1024
        assert text.isprintable(), repr(text)
