"""slurmlet parse-slurm: captured answers of every release and form, and what is no answer at all."""
import csv
import json
import os
import pwd
import shutil
import subprocess
import tempfile

import pytest

from harness.api import repository
from harness.daemon import BINARY
from harness.rig import GENERAL_WAIT

FIXTURES = repository() / "test/fixtures/slurm"
KEYS = ["source", "facts", "conditions", "capacity", "allocatable", "labels", "notUnderstood"]
NOT_RECOGNISED = 1
BAD_USAGE = 2


def table():
    """expected.tsv, the lines of each file together."""
    files = {}
    with open(FIXTURES / "expected.tsv", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            files.setdefault((row["release"], row["file"]), []).append(row)
    return files


TABLE = table()
# One file for each release, form and outcome: the table of them all is test/unit/slurm/captures_test.
EXAMPLES = {(rows[0]["release"], rows[0]["source"], rows[0]["state"], rows[0]["failure"],
             len(rows) > 1): file for file, rows in sorted(TABLE.items(), reverse=True)}


def run(*arguments, stdin=b""):
    return subprocess.run([str(BINARY), "parse-slurm", *map(str, arguments)], input=stdin,
                          capture_output=True, timeout=GENERAL_WAIT, check=False,
                          env={"PATH": "/nonexistent"})


def with_headings(source, file, text):
    """The captures of sinfo were made with -h; with the headings that it prints without."""
    if source != "sinfo":
        return text
    if b"|" not in text:  # -o %T
        return b"STATE\n" + text
    if file.startswith("query-"):
        return (b"NODELIST|PARTITION|STATECOMPLETE|CPUS(A/I/O/T)|MEMORY|ALLOCMEM|FREE_MEM|CPU_LOAD|"
                b"GRES|GRES_USED|VERSION|AVAIL_FEATURES|CLUSTER|TIMESTAMP|USER|REASON|\n" + text)
    if file == "sinfo-O.out":
        return (b"NODELIST|STATE|STATE|CPUS(A/I/O/T)|MEMORY|FREE_MEM|ALLOCMEM|GRES|GRES_USED|REASON|"
                b"TIMESTAMP|USER|\n" + text)
    return (b"NODELIST|STATE|STATE|CPUS(A/I/O/T)|MEMORY|FREE_MEM|GRES|REASON|TIMESTAMP|USER|CPU_LOAD|"
            b"PARTITION\n" + text)


def document(done):
    """The one JSON document that was printed, with all its keys, and nothing beside it."""
    assert done.stderr == b""
    parsed = json.loads(done.stdout)
    assert list(parsed)[:len(KEYS)] == KEYS
    assert set(parsed) <= {*KEYS, "nodes"}
    assert done.stdout.startswith(b'{\n  "source"') and done.stdout.endswith(b"\n}\n")
    return parsed


def parse(*arguments, stdin=b"", code=0):
    done = run(*arguments, stdin=stdin)
    assert done.returncode == code, (done.returncode, done.stderr, done.stdout[:500])
    return document(done)


def conditions(parsed):
    return {condition["type"]: condition for condition in parsed["conditions"]}


def cell(value):
    return "-" if value in (None, "", []) else str(value)


@pytest.mark.parametrize("release,file", sorted(set(EXAMPLES.values())))
def test_every_form_of_every_release(release, file):
    rows = TABLE[release, file]
    path = FIXTURES / release / file
    text = with_headings(rows[0]["source"], file, path.read_bytes())
    done = run("-" if rows[0]["source"] == "sinfo" else path, stdin=text)
    parsed = document(done)
    if rows[0]["source"] == "-":
        assert "state" not in parsed["facts"] and "nodes" not in parsed
        return
    assert done.returncode == 0
    assert parsed["source"] == rows[0]["source"]
    parts = parsed.get("nodes", [parsed])
    assert len(parts) == len(rows)
    for row, part in zip(rows, parts):
        assert list(part) == KEYS
        facts = part["facts"]
        if row["failure"] != "-":
            assert facts["failure"]["cause"] and "name" not in facts
            assert {c["status"] for c in part["conditions"]} == {"Unknown"}
            assert part["capacity"] == part["allocatable"] == part["labels"] == {}
            continue
        assert cell(facts.get("name")) == row["node"]
        assert cell(facts.get("state")) == row["state"]
        assert cell(facts.get("cpus")) == row["cpus"]
        assert cell(facts.get("realMemoryMiB")) == row["real_memory"]
        assert cell(facts.get("reason")) == row["reason"].replace("\\n", "\n")
        assert facts.get("partitions", ()) is None or row["partitions"] != "?"
        if row["state"] != "-":
            drain = conditions(part)["SlurmNodeStateDrain"]
            words = row["state"].split("+")
            # sinfo's words "reboot" and "inval" can hide DRAIN.
            hidden = row["source"] == "sinfo" and drain["reason"] == "NotReported"
            assert not hidden or "INVALID_REG" in words or row["state"].find("REBOOT") > 0
            assert hidden or drain["status"] == str("DRAIN" in words)


# -- one answer, word for word -------------------------------------------------


def test_a_draining_gpu_node_from_slurmrestd():
    parsed = parse(FIXTURES / "25.11/reboot-requested.rest.out")
    facts = parsed["facts"]
    assert facts["name"] == "gpu01" and facts["hostName"] == "vm"
    assert facts["state"] == "MIXED+DRAIN+REBOOT_REQUESTED"
    assert facts["baseState"] == "MIXED"
    assert facts["stateFlags"] == ["DRAIN", "REBOOT_REQUESTED"]
    assert facts["gres"] == [{"name": "gpu", "type": "a100", "count": 4},
                             {"name": "gpu", "type": "v100", "count": 2}]
    assert facts["gresUsed"][0] == {"name": "gpu", "type": "a100", "count": 2, "indices": "0-1"}
    assert facts["reason"] == "kernel 6.9" and facts["reasonUser"] == "root"
    assert facts["reasonTime"] == "2026-11-20T23:09:07Z"
    assert facts["apiVersion"] == "v0.0.44" and facts["httpStatus"] == 200
    assert facts["allocatedCpus"] == 2 and facts["allocationIsFresh"] is False
    assert parsed["capacity"]["cpu"] == "8" and parsed["capacity"]["memory"] == "4Gi"
    assert parsed["capacity"]["nvidia.com/gpu"] == "6" and parsed["capacity"]["pods"] == "0"
    drain = conditions(parsed)["SlurmNodeStateDrain"]
    # An answer about one node, whose MIXED may stand over another state.
    assert (drain["status"], drain["reason"]) == ("True", "JobsUnknown")
    assert "kernel 6.9" in drain["message"]
    ready = conditions(parsed)["Ready"]
    assert (ready["status"], ready["reason"]) == ("Unknown", "NotConfirmed")


@pytest.mark.parametrize("release,reservation", [("22.05", None), ("24.11", "repair")])
def test_the_answer_to_our_own_query(release, reservation):
    parsed = parse(FIXTURES / "own-query" / f"{release}.out")
    facts = parsed["facts"]
    assert facts["name"] == "n1" and parsed["notUnderstood"] == []
    assert facts["comment"] == "rack 7 | see\nState=IDLE"
    assert facts["reason"] == "disk | swap\nn1|normal|idle" and facts["reasonUser"] == "root"
    assert facts.get("reservation") == reservation and "cluster" not in facts
    drain = conditions(parsed)["SlurmNodeStateDrain"]
    assert "disk | swap n1|normal|idle" in drain["message"]


def test_messages_are_of_one_line_without_control_characters():
    parsed = parse(stdin=b"NODELIST|STATE|REASON\nn1|drained|a\x07b\xe2\x80\xaec\n")
    message = conditions(parsed)["SlurmNodeStateDrain"]["message"]
    assert "a" in message and message.isprintable()


def test_what_slurmd_says_of_itself():
    parsed = parse(FIXTURES / "25.11/local-show-slurmd-busy.out")
    assert parsed["source"] == "scontrol show slurmd"
    assert parsed["facts"]["name"] == "cpu02"
    assert parsed["facts"]["slurmd"]["activeSteps"] == ["2.0", "2"]
    assert conditions(parsed)["SlurmdReady"]["status"] == "True"
    assert parsed["capacity"] == {}


def test_a_slurmd_that_does_not_answer_is_not_slurmctlds_fault():
    parsed = parse(FIXTURES / "25.11/slurmd-down.show-slurmd.err")
    assert parsed["facts"]["failure"] == {"cause": "SlurmdNotAnswering",
                                          "detail": "Connection refused"}
    assert [(c["type"], c["status"]) for c in parsed["conditions"]] == [("SlurmdReady", "Unknown")]


def test_several_nodes_are_several_documents_unless_one_is_asked_for():
    file = FIXTURES / "22.05.8/sinfo-json.out"
    parsed = parse(file)
    names = ["cpu01", "cpu02", "dead01", "gpu01", "gpu02"]
    assert sorted(parsed["facts"]["nodes"]) == names
    assert parsed["conditions"] == [] and parsed["capacity"] == parsed["labels"] == {}
    assert sorted(part["facts"]["name"] for part in parsed["nodes"]) == names
    one = parse(file, "--node", "gpu01")
    assert "nodes" not in one and one["facts"]["name"] == "gpu01"
    assert one in [{**part, "notUnderstood": one["notUnderstood"]} for part in parsed["nodes"]]


@pytest.mark.parametrize("text", [
    b"REASON               USER      TIMESTAMP           NODELIST\n"
    b"bad dimm             root      2025-03-04T10:11:12 n4\n",
    b"PARTITION AVAIL  TIMELIMIT   NODES(A/I/O/T) NODELIST\n"
    b"debug*       up   infinite          0/0/1/1 n4\n",
    b'{"nodes": [{"name": "n4", "cpus": 8, "state": []}], "meta": {"command": ["show", "node"]}}',
], ids=["sinfo -R", "sinfo -s", "JSON"])
def test_an_answer_without_a_state_tells_of_none(text):
    parsed = parse(stdin=text)
    assert parsed["facts"]["name"] == "n4" and "state" not in parsed["facts"]
    assert parsed["conditions"] == []


def test_nodes_of_two_clusters_may_have_one_name():
    head = b"PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n"
    parsed = parse(stdin=b"CLUSTER: c1\n" + head + b"a*  up   infinite   1   idle n1\n\n"
                         b"CLUSTER: c2\n" + head + b"a*  up   infinite   1   down n1\n")
    assert parsed["notUnderstood"] == []
    assert [(part["facts"]["cluster"], part["facts"]["state"],
             part["labels"]["slurmlet.io/slurm-cluster"]) for part in parsed["nodes"]] == [
                 ("c1", "IDLE", "c1"), ("c2", "DOWN", "c2")]


def test_a_list_of_nodes_without_its_meta_is_recognised():
    nodes = json.dumps({"nodes": json.loads(NODE)["nodes"]}).encode()
    parsed = parse(stdin=nodes)
    assert parsed["source"] == "unknown" and parsed["facts"]["state"] == "IDLE"


def test_the_json_of_23_02_says_allocated_of_a_node_in_part_use():
    for file in ("23.02/mixed.json.out", "23.02/mixed.out"):
        told = conditions(parse(FIXTURES / file))
        assert told["SlurmNodeStateMixed"]["status"] == "True", file
        assert told["SlurmNodeStateAllocated"]["status"] == "False", file


def test_a_node_without_power_is_not_ready():
    told = conditions(parse(stdin=b"NODELIST STATE\nn4 idle~\n"))
    assert told["Ready"]["status"] == "False" and told["Ready"]["reason"] == "SlurmPoweredDown"


# -- stdin ---------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_stdin_reads_as_the_file_does(arguments):
    file = FIXTURES / "24.05/mixed-gpu.detail.out"
    assert parse(*arguments, stdin=file.read_bytes()) == parse(file)


def test_a_pipe_without_a_writer_is_an_empty_answer():
    assert parse(stdin=b"", code=NOT_RECOGNISED)["source"] == "unknown"


def test_sinfo_without_headings_is_told_how_to_be_captured():
    for text in (b"idle\n", b"n4|idle|0/8/0/8\n", b"n4 1 debug idle\n",
                 (FIXTURES / "25.11/idle.sinfo.out").read_bytes()):
        parsed = parse(stdin=text, code=NOT_RECOGNISED)
        detail = parsed["facts"]["failure"]["detail"]
        assert "scontrol show node NAME" in detail and "sinfo -N -n NAME -o" in detail
        assert "headings (no -h)" in detail and parsed["conditions"]


def test_words_that_hide_a_state_leave_its_condition_unknown():
    told = conditions(parse(stdin=b"NODELIST STATE\nn4 drained\n"))
    assert told["SlurmNodeStateDrain"]["status"] == "True"
    for name in ("SlurmNodeStateDown", "SlurmNodeStateIdle"):
        assert (told[name]["status"], told[name]["reason"]) == ("Unknown", "NotReported")


# -- what is no answer ---------------------------------------------------------

NODE = (FIXTURES / "25.11/idle.json.out").read_bytes()
ODD = {
    "empty": b"",
    "blank": b" \r\n\t\n",
    "words": b"hello, world\n",
    "binary": bytes(range(256)) * 64,
    "elf": b"\x7fELF\x02\x01\x01" + b"\x00" * 4000,
    "other JSON": b'{"kind": "NodeList", "items": []}',
    "deep JSON": b"[" * 100000,
    "ten megabytes": b"x" * 10_000_000,
    "ten megabytes of lines": b"abc def\n" * 1_250_000,
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_answer_is_said_to_be_none(name):
    parsed = parse(stdin=ODD[name], code=NOT_RECOGNISED)
    assert "state" not in parsed["facts"]
    assert parsed["capacity"] == parsed["allocatable"] == parsed["labels"] == {}
    assert all(condition["status"] == "Unknown" for condition in parsed["conditions"])


HTML = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>\n"


@pytest.mark.parametrize("text", [
    HTML,
    b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\n\r\n" + HTML,
    NODE[:len(NODE) // 2],
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + NODE[:900],
], ids=["page", "page with head", "cut off", "cut off with head"])
def test_a_broken_answer_names_no_state(text):
    parsed = document(run(stdin=text))
    assert "state" not in parsed["facts"] and parsed["capacity"] == {}
    assert "failure" in parsed["facts"] or parsed["notUnderstood"]
    assert all(condition["status"] == "Unknown" for condition in parsed["conditions"])


def test_every_cut_of_an_answer_is_survived():
    """No prefix crashes, and none makes another node of it."""
    for file in ("22.05.8/query-two-partitions.out", "25.11/draining-mixed.detail.out"):
        text = (FIXTURES / file).read_bytes()
        for end in range(0, len(text), 17):
            done = run(stdin=text[:end])
            assert done.returncode in (0, NOT_RECOGNISED), (file, end, done.stderr)
            document(done)


def test_bytes_that_are_no_utf8_are_replaced():
    text = (FIXTURES / "25.11/drained-idle.out").read_bytes().replace(b"ticket", b"\xff\xfe\xc3")
    parsed = parse(stdin=text)
    assert "�" in parsed["facts"]["reason"]


def test_words_of_a_newer_slurm_are_kept_and_named():
    text = (FIXTURES / "25.11/idle.out").read_bytes().replace(
        b"State=IDLE", b"State=IDLE+FROBNICATED").replace(b"Weight=1", b"Weight=1 Shininess=7")
    parsed = parse(stdin=text)
    assert parsed["facts"]["state"] == "IDLE+FROBNICATED"
    assert conditions(parsed)["SlurmNodeStateFrobnicated"]["status"] == "True"
    assert any("Shininess" in word for word in parsed["notUnderstood"])


def test_another_node_than_asked_for_is_not_recognised():
    for file, node in (("25.11/mixed.out", "gpu01"), ("22.05.8/sinfo-json.out", "nope01")):
        parsed = parse(FIXTURES / file, "--node", node, code=NOT_RECOGNISED)
        assert node in parsed["facts"]["failure"]["detail"]
        assert "state" not in parsed["facts"] and "nodes" not in parsed


# -- safe to attach to a bug report --------------------------------------------


def test_tokens_are_not_repeated():
    token = "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjF9.c2VjcmV0c2VjcmV0c2VjcmV0"
    request = (f"> GET /slurm/v0.0.44/node/cpu01 HTTP/1.1\r\n> X-SLURM-USER-TOKEN: {token}\r\n"
               f"> Authorization: Bearer opaque-{token[:5]}-4711\r\n>\r\n").encode()
    head, _, body = (FIXTURES / "25.11/jwt-ok.out").read_bytes().partition(b"\n\n")
    for text in (request + head + b"\n\n" + body,
                 head + b"\nX-SLURM-USER-TOKEN: " + token.encode() + b"\n\n" + body,
                 b"SLURM_JWT=" + token.encode() + b"\n",
                 b"# " + token.encode() + b"\n" + body):
        done = run(stdin=text)
        document(done)
        assert token.encode() not in done.stdout and b"4711" not in done.stdout
        assert b"c2VjcmV0" not in done.stdout


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become nobody")
def test_needs_no_privileges():
    with tempfile.TemporaryDirectory() as directory:  # the repository need not be readable to all
        os.chmod(directory, 0o755)
        program = shutil.copy(BINARY, directory)
        done = subprocess.run([program, "parse-slurm"], capture_output=True, cwd="/", check=False,
                              input=(FIXTURES / "24.11/idle.out").read_bytes(), env={},
                              user=pwd.getpwnam("nobody").pw_uid, timeout=GENERAL_WAIT)
    assert done.returncode == 0 and document(done)["facts"]["state"] == "IDLE"


# -- usage ---------------------------------------------------------------------


@pytest.mark.parametrize("arguments,words", [
    (["/nonexistent/answer.out"], ["/nonexistent/answer.out", "No such file", "stdin"]),
    (["/"], ["read /", "directory"]),
    (["a", "b"], ["one file", '"b"']),
    (["--nod", "n1"], ["--nod", "--node"]),
])
def test_mistakes_are_refused_with_the_cure(arguments, words):
    done = run(*arguments)
    assert done.returncode == BAD_USAGE and done.stdout == b""
    for word in words:
        assert word in done.stderr.decode()


def test_help_tells_how():
    done = run("--help")
    assert done.returncode == 0 and b"parse-slurm [FILE] [--node NAME]" in done.stdout
