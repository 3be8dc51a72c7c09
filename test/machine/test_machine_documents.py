"""The shell blocks of the user pages that say "run: node", on a machine that boots with our package and Slurm. First
those of docs/how-to/install-nodes.md, which give it a credential; those of docs/how-to/uninstall.md take it out of the
cluster. The seconds of each page are printed at the end."""
import sys
import time

import pytest
from machine import SERVER

from harness.api import repository
from harness.bootstrap import GROUP, bootstrap_kubeconfig

sys.path.insert(0, str(repository() / "scripts/docs"))
import blocks  # noqa: E402
import markdown  # noqa: E402

FIRST, LAST = "docs/how-to/install-nodes.md", "docs/how-to/uninstall.md"
PAGES = sorted({markdown.name(block.page) for block in blocks.every() if block.where == "node"},
               key=lambda name: (name != FIRST, name == LAST, name))


@pytest.fixture(scope="module", name="node")
def the_machine(new_node, image):
    one = new_node(image)
    one.provision("#cloud-config\n{}\n")
    one.machine.power_on()
    one.machine.wait_booted()
    file = one.machine.directory / "bootstrap-kubeconfig"
    bootstrap_kubeconfig(one.plane, file, GROUP)
    address = one.plane.admin.port
    one.machine.write("/root/bootstrap-kubeconfig",
                      file.read_text().replace(f"127.0.0.1:{address}", "{}:{}".format(*SERVER)), 0o600)
    return one


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page(page, node, timing):
    began = time.monotonic()
    for block in blocks.of_page(repository() / page):
        if block.where != "node":
            continue
        text = block.script({"NAME": node.name})
        status, said = node.machine.attempt("bash", "-euc", f"cd /root\n{text}")
        print(f"--- {block.name}: {status}\n{text}\n{said}")
        assert status == block.exit_code, f"{block.name}: {said}"
    if page != LAST:
        node.machine.run("slurmlet", "wait-registered", "--timeout=120")
    timing(f"{page}: its blocks run", time.monotonic() - began)
