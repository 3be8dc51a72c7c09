"""Whose the ports are: taken by another program, lost, or held by a socket unit over restarts."""
import json
import re
import socket
import ssl

import pytest

from harness.api import condition
from harness.kubelet_client import KubeletClient
from harness.metric_names import one
from harness.programs import free_port, get_page
from harness.rig import GENERAL_WAIT, wait_until
from harness.service_account import ServiceAccount

LONGEST_RETRY = 31  # seconds between two attempts


@pytest.fixture(name="scraper")
def client_with_rights(rig, plane):
    account = ServiceAccount(plane, "scraper")
    account.grant("scraper", [{"apiGroups": [""], "resources": ["nodes/metrics"],
                               "verbs": ["get"]}])
    rig.ports = {"port": free_port(), "healthzPort": free_port()}
    rig.configure(endpoint=rig.ports)
    return KubeletClient(rig.ports["port"], token=account.token())


def answers(client):
    try:
        return client.get("/metrics").text
    except OSError:
        return None


def healthy(port):
    with socket.create_connection(("127.0.0.1", port), timeout=GENERAL_WAIT) as client:
        client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        return client.recv(100).startswith(b"HTTP/1.1 200")


def endpoint_status(port):
    """That of the kubelet API by GET /status; nothing while nobody answers."""
    _, text = get_page(port, "/status")
    return json.loads(text)["endpoint"] if text else None


def test_a_port_that_is_taken_is_had_when_it_is_free(rig, scraper):
    """The Node names the port all the while: without it the API server would take 10250."""
    kubelet, health = rig.ports["port"], rig.ports["healthzPort"]
    with socket.create_server(("127.0.0.1", kubelet)):
        with socket.create_server(("127.0.0.1", health)):
            rig.start()
            for port in kubelet, health:
                assert rig.log().count(f":{port} is in use by another program") == 1
            endpoints = rig.node()["status"]["daemonEndpoints"]
            assert endpoints == {"kubeletEndpoint": {"Port": kubelet}}
        said = wait_until(lambda: endpoint_status(health), LONGEST_RETRY, "the health port")
        assert said == {"port": kubelet, "listening": False}
    text = wait_until(lambda: answers(scraper), LONGEST_RETRY, "the kubelet port")
    assert endpoint_status(health) == {"port": kubelet, "listening": True}
    for endpoint in "kubelet", "healthz":
        assert one(text, "slurmlet_endpoint_bind_failures_total", endpoint=endpoint) > 1
    assert healthy(health)
    for port in kubelet, health:
        assert rig.log().count(f":{port} is in use by another program") == 1
    assert rig.log().count(": now listening") == 2


def test_a_socket_unit_holds_the_ports_over_restarts(rig, scraper):
    sockets = [socket.create_server(("::", rig.ports["port"]), family=socket.AF_INET6,
                                    dualstack_ipv6=True),
               socket.create_server(("127.0.0.1", rig.ports["healthzPort"]))]
    rig.sockets = sockets
    try:
        rig.start()
        assert answers(scraper) and healthy(rig.ports["healthzPort"])
        rig.daemon.kill()
        # Nobody else can have it, and who connects now is served by the next daemon.
        with pytest.raises(OSError), socket.create_server(("127.0.0.1", rig.ports["port"])):
            pass
        with socket.create_connection(("127.0.0.1", rig.ports["port"])) as early:
            rig.start()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            early.settimeout(GENERAL_WAIT)
            with context.wrap_socket(early) as tls:
                tls.sendall(b"GET /metrics HTTP/1.1\r\nHost: n\r\n\r\n")
                assert tls.recv(100).startswith(b"HTTP/1.1 401")
        assert one(answers(scraper), "slurmlet_endpoint_bind_failures_total",
                   endpoint="kubelet") == 0
        # As ss --kill ends it.
        sockets[0].shutdown(socket.SHUT_RDWR)
        rig.wait_log("the socket was lost")
        assert wait_until(lambda: answers(scraper), GENERAL_WAIT, "the port that was lost")
        assert condition(rig.node(), "Ready")["status"] == "True"
    finally:
        for each in sockets:
            each.close()


def test_a_socket_unit_of_other_ports_is_warned_of(rig, scraper):
    with socket.create_server(("127.0.0.1", 0)) as other:
        rig.sockets = [other]
        rig.start()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        assert re.search(rf"slurmlet\.socket listens on {address}, .*get no answer", rig.log())
        assert answers(scraper)
