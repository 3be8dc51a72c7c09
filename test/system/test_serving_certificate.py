"""The serving certificate that the cluster issues, and what serves until then."""

import pytest

from harness.bootstrap import (SERVING, BootstrapRig, has_condition, openssl_text,
                               request_pem)
from harness.certificates import cluster_authority
from harness.kubelet_client import KubeletClient, ServingCertificate
from harness.metric_names import one
from harness.programs import free_port
from harness.rig import wait_until


@pytest.fixture(name="node")
def node_with_an_endpoint(bootstrap_rig, plane):
    node = bootstrap_rig(BootstrapRig, plane)
    node.port = free_port()
    node.configure(endpoint={"port": node.port})
    return node


def metrics(node):
    certificate = cluster_authority(node.plane, node.directory / "admin").issue(
        "admin", "admin", ["system:masters"])
    return KubeletClient(node.port, certificate=certificate).get("/metrics").text


def issued(node):
    wait_until(lambda: not ServingCertificate(node.port).self_signed, what="the certificate")
    return ServingCertificate(node.port)


def addresses(node):
    """The Node's addresses as a certificate names them."""
    return {("IP:" if one["type"].endswith("IP") else "DNS:") + one["address"]
            for one in node.node()["status"]["addresses"]}


def test_self_signed_serves_while_approval_is_pending(node, timing):
    timing("start to Ready with a serving certificate pending", node.start())
    request = node.wait_request(signer=SERVING)
    before = ServingCertificate(node.port)
    assert before.self_signed
    text = metrics(node)
    assert one(text, "slurmlet_serving_certificate_self_signed") == 1
    assert one(text, "slurmlet_certificate_request_pending", certificate="serving") == 1
    node.wait_log("is waiting for approval: kubectl certificate approve " +
                  request["metadata"]["name"])
    assert node.log().count("is waiting for approval") == 1
    # Visible, but not as a condition.
    assert not [entry for entry in node.node()["status"]["conditions"]
                if "ertificate" in entry["type"]]


def test_request_is_as_the_kubelet_serving_signer_wants_it(node):
    node.start()
    request = node.wait_request(signer=SERVING)
    assert request["spec"]["username"] == f"system:node:{node.name}"
    assert sorted(request["spec"]["usages"]) == ["digital signature", "server auth"]
    text = openssl_text("req", "-noout", "-text", text=request_pem(request))
    subject = openssl_text("req", "-noout", "-subject", "-nameopt", "RFC2253",
                           text=request_pem(request))
    assert "O=system:nodes" in subject
    for name in addresses(node):
        kind, value = name.split(":", 1)
        assert (f"IP Address:{value}" if kind == "IP" else f"DNS:{value}") in text \
            or ":" in value  # IPv6 is written in another form


def test_approved_certificate_serves_and_clients_verify_it(node):
    node.start()
    node.approve(node.wait_request(signer=SERVING))
    certificate = issued(node)
    assert {name for name in addresses(node) if name.count(":") == 1} <= certificate.names
    host = next(one["address"] for one in node.node()["status"]["addresses"]
                if one["type"] == "InternalIP")
    client = KubeletClient(node.port, host=host, ca=node.plane.directory / "pki/ca.crt")
    assert client.get("/metrics").status == 401
    text = metrics(node)
    assert one(text, "slurmlet_serving_certificate_self_signed") == 0
    assert one(text, "slurmlet_certificate_request_pending", certificate="serving") == 0
    assert one(text, "slurmlet_certificate_expiration_timestamp_seconds",
               certificate="serving") > 0
    assert not [request for request in node.requests(SERVING) if has_condition(request, "Denied")]


def test_other_addresses_make_another_request(node):
    """While the old certificate serves on."""
    node.start()
    node.approve(node.wait_request(signer=SERVING))
    before = issued(node)
    first, = node.requests(SERVING)
    node.configure(endpoint={"port": node.port}, node={"publishHostname": False,
                                                       "ip": "198.51.100.7"})
    node.stop()
    node.start()
    second = node.wait_request(lambda one: one["metadata"]["uid"] != first["metadata"]["uid"],
                               signer=SERVING)
    assert ServingCertificate(node.port).pem == before.pem
    node.approve(second)
    wait_until(lambda: ServingCertificate(node.port).pem != before.pem, what="the new certificate")
    assert "IP:198.51.100.7" in ServingCertificate(node.port).names


def test_without_server_tls_bootstrap_nothing_is_asked(node):
    node.configure(endpoint={"port": node.port, "serverTLSBootstrap": False})
    node.start_and_know()
    assert ServingCertificate(node.port).self_signed
    assert node.requests(SERVING) == []
