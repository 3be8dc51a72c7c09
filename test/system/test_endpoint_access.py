"""Who may ask the kubelet port what: identities x paths x methods against the kubelet's rules."""
import concurrent.futures
import http.client
import re
import time

import pytest

from harness.certificates import Authority, cluster_authority
from harness.kubelet_client import KubeletClient, ServingCertificate, listening
from harness.metric_names import one
from harness.programs import free_port
from harness.rig import wait_until
from harness.service_account import ServiceAccount

VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
DATA = ["/pods", "/runningpods/", "/healthz", "/configz", "/stats/summary", "/metrics",
        "/metrics/resource", "/metrics/cadvisor", "/metrics/probes"]
STREAMS = {"/containerLogs/default/p/c": {"GET"}, "/exec/default/p/c": {"GET", "POST"},
           "/attach/default/p/c": {"GET", "POST"}, "/portForward/default/p": {"GET", "POST"},
           "/run/default/p/c": {"POST"}, "/checkpoint/default/p/c": {"POST"}}
UNKNOWN = ["/", "/unknown", "/podsx", "/metrics/unknown", "/logs/", "/debug/pprof/", "/statusz"]
ENCODED = {"/%6detrics": "/metrics", "//metrics": "/metrics", "/pods/../metrics": "/metrics"}


def prepare(rig):
    rig.ports = {"port": free_port(), "healthzPort": free_port()}
    rig.configure(endpoint=rig.ports)


def subresources(path):
    """What the kubelet asks about, in order (kubelet authorization; KEP-2862)."""
    for first, names in {"/pods": ["pods", "proxy"], "/runningpods": ["pods", "proxy"],
                         "/healthz": ["healthz", "proxy"], "/configz": ["configz", "proxy"],
                         "/stats": ["stats"], "/metrics": ["metrics"], "/logs": ["log"],
                         "/checkpoint": ["checkpoint"], "/statusz": ["statusz"]}.items():
        if path == first or path.startswith(first + "/"):
            return names
    return ["proxy"]


def expected(rights, method, path):
    """`rights`: {(verb, subresource)}, "all", or None for somebody who is not believed."""
    if rights is None:
        return 401
    if rights != "all" and not any((VERBS[method], name) in rights for name in subresources(path)):
        return 403
    if path in DATA:
        return 200 if method == "GET" or (method, path) == ("POST", "/stats/summary") else 405
    if path in STREAMS:
        return 400 if method in STREAMS[path] else 405
    return 404


@pytest.fixture(scope="module", name="identities")
def everybody(shared_rig, plane):
    """{name: (client, rights)}"""
    port = shared_rig.ports["port"]
    authority = cluster_authority(plane, shared_rig.directory / "pki")
    strangers = Authority(shared_rig.directory / "strangers", "kubernetes")

    def account(name, rights):
        one = ServiceAccount(plane, name)
        for verb, subresource in rights:
            one.grant(f"{name}-{verb}-{subresource}", [
                {"apiGroups": [""], "resources": [f"nodes/{subresource}"], "verbs": [verb]}])
        return KubeletClient(port, token=one.token()), set(rights)

    def holder(issuer, name, user, groups, rights):
        return KubeletClient(port, certificate=issuer.issue(name, user, groups)), rights

    return {
        "anonymous": (KubeletClient(port), None),
        "a token nobody issued": (KubeletClient(port, token="eyJhbGciOiJub25lIn0.e30."), None),
        "a token without rights": account("nobody", []),
        "nodes/metrics": account("metrics-only", [("get", "metrics")]),
        "nodes/stats": account("stats-only", [("get", "stats"), ("create", "stats")]),
        "nodes/pods": account("pods-only", [("get", "pods")]),
        "nodes/proxy": account("proxy-only", [("get", "proxy")]),
        "nodes/proxy create": account("proxy-create", [("create", "proxy")]),
        "the node itself": holder(authority, "self", f"system:node:{shared_rig.name}",
                                  ["system:nodes"], set()),
        "another node": holder(authority, "other", "system:node:other", ["system:nodes"], set()),
        "the API server": holder(authority, "apiserver", "kube-apiserver-kubelet-client", [],
                                 {(verb, name) for verb in VERBS.values() for name in (
                                     "proxy", "stats", "log", "metrics", "configz", "healthz",
                                     "pods")}),
        "an administrator": holder(authority, "admin", "admin", ["system:masters"], "all"),
        "an administrator of another CA": holder(strangers, "admin", "admin", ["system:masters"],
                                                 None),
    }


@pytest.fixture(scope="module", name="late")
def right_given_later(shared_rig, plane):
    """(client that was denied and then given the right, when that was, its answer right after)"""
    account = ServiceAccount(plane, "late")
    client = KubeletClient(shared_rig.ports["port"], token=account.token())
    assert client.get("/metrics").status == 403
    denied = time.monotonic()
    account.grant("late", [{"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]}])
    return client, denied, client.request("GET", "/metrics").status


def wrong_answers(identities, requests):
    found = []
    for name, (client, rights) in identities.items():
        for method, path, meant in requests:
            status = client.patient(method, path).status
            if status != expected(rights, method, meant):
                found.append(f"{name}: {method} {path}: {status}, "
                             f"expected {expected(rights, method, meant)}")
    return found


@pytest.mark.slow
def test_every_identity_reads_what_the_kubelet_would_let_it(identities, late):
    requests = [("GET", path, path) for path in [*DATA, *STREAMS, *UNKNOWN]]
    assert wrong_answers(identities, requests) == []


@pytest.mark.slow
def test_every_identity_may_use_the_methods_the_kubelet_would_let_it(identities):
    requests = [(method, path, path) for method in VERBS if method != "GET"
                for path in ("/metrics", "/stats/summary", "/exec/default/p/c", "/unknown")]
    assert wrong_answers(identities, requests) == []


def test_a_path_cannot_be_disguised(identities):
    """What decides about the rights and what answers see the same path."""
    for name in ("anonymous", "a token without rights", "nodes/pods", "nodes/metrics"):
        client, rights = identities[name]
        for path, meant in ENCODED.items():
            answer = client.get(path)
            if answer.status == 200:
                assert expected(rights, "GET", meant) == 200, f"{name}: {path}"
                assert "slurmlet_build_info" in answer.text or "PodList" in answer.text


def test_refusals_have_the_api_s_status_form(identities):
    for name, path, reason in (("anonymous", "/metrics", "Unauthorized"),
                               ("a token without rights", "/metrics", "Forbidden"),
                               ("an administrator", "/unknown", "NotFound")):
        answer = identities[name][0].get(path)
        body = answer.json()
        assert (body["kind"], body["apiVersion"], body["status"]) == ("Status", "v1", "Failure")
        assert (body["code"], body["reason"]) == (answer.status, reason)
        assert answer.headers["Content-Type"].startswith("application/json")


def test_wrong_method_says_which_are_right(identities):
    answer = identities["an administrator"][0].patient("DELETE", "/pods")
    assert answer.status == 405
    assert "GET" in answer.headers["Allow"]


# -- without the API server -----------------------------------------------------------------


def timed(client, path):
    """(answer, the seconds it took)"""
    began = time.monotonic()
    return client.request("GET", path, timeout=30), time.monotonic() - began


# Calls to an API server that is gone fail at once; one that hangs has ten seconds.
@pytest.mark.parametrize("end, begin_again, longest", [("stop", "start", 5),
                                                       ("pause", "resume", 13)])
def test_known_callers_are_served_and_strangers_get_503_without_the_api_server(
        shared_rig, identities, plane, end, begin_again, longest, timing):
    port = shared_rig.ports["port"]
    known, fresh = (KubeletClient(port, token=ServiceAccount(plane, "metrics-only").token())
                    for _ in range(2))
    assert known.get("/metrics").status == 200
    plane.ctl(end, "kube-apiserver")
    try:
        with concurrent.futures.ThreadPoolExecutor() as pool:
            stranger = pool.submit(timed, fresh, "/metrics")
            # Who is known may not get further than before, either.
            further = pool.submit(timed, known, "/pods")
            for _ in range(4):  # nobody waits for those two
                answer, seconds = timed(known, "/metrics")
                assert (answer.status, seconds < 2) == (200, True), (answer, seconds)
                time.sleep(0.2)
            assert timed(KubeletClient(port), "/metrics")[0].status == 401
            answer, seconds = stranger.result()
            assert answer.status == 503, answer
            assert answer.json()["reason"] == "ServiceUnavailable"
            timing("503 for strangers", seconds)
            assert seconds < longest
            answer, seconds = further.result()
            assert answer.status in (403, 503), answer
            assert seconds < longest
    finally:
        plane.ctl(begin_again, "kube-apiserver")
    wait_until(lambda: fresh.request("GET", "/metrics").status == 200, what="strangers served")


def test_right_that_is_given_later_counts_within_the_kubelet_s_time(late):
    """A denial is kept for 30 s, as by the kubelet, and no longer. (The tests before this one take
    those seconds.)"""
    client, denied, right_after = late
    assert right_after == 403
    time.sleep(max(0, denied + 30.5 - time.monotonic()))
    assert client.get("/metrics").status == 200


# -- what is open ------------------------------------------------------------------------------


def test_listens_on_the_kubelet_port_and_on_loopback_for_health_only(shared_rig):
    found = listening(shared_rig.daemon.pid)
    ports = shared_rig.ports
    assert {port for _, port in found} == {ports["port"], ports["healthzPort"]}
    assert {address for address, port in found if port == ports["healthzPort"]} == {"127.0.0.1"}


def test_health_needs_no_credential_on_loopback(shared_rig):
    connection = http.client.HTTPConnection("127.0.0.1", shared_rig.ports["healthzPort"],
                                            timeout=10)
    connection.request("GET", "/healthz")
    response = connection.getresponse()
    assert (response.status, response.read().strip()) == (200, b"ok")
    connection.close()


def test_no_secret_in_the_log_or_the_configuration_shown(shared_rig, identities):
    shown = shared_rig.log() + identities["an administrator"][0].get("/configz").text
    for client, _ in identities.values():
        if client.token:
            assert client.token not in shown
    assert not re.search(r"PRIVATE KEY|Bearer ", shown)


def test_serves_before_its_certificate_is_approved(shared_rig, identities):
    assert ServingCertificate(shared_rig.ports["port"]).self_signed
    metrics = identities["nodes/metrics"][0].get("/metrics").text
    assert one(metrics, "slurmlet_serving_certificate_self_signed") == 1
