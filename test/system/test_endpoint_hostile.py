"""Strangers that mean harm, all at once, against the daemon as it is shipped. (What each of them
gets is told by test/unit/podapi/hostile_client_test.cpp; here is what they must not change.)"""
import asyncio
import collections
import contextlib
import http.client
import pathlib
import re
import secrets
import ssl
import threading
import time

import pytest

from harness.kubelet_client import KubeletClient
from harness.metric_names import one, samples
from harness.programs import free_port
from harness.rig import wait_until
from harness.service_account import ServiceAccount
from harness.shakers import Shakers

HALF_OPEN = 500
ROUND = 13  # seconds; two rounds are longer than two intervals of the lease
LEASE_GAP = 11.5  # seconds, of the ten that are promised
SHAKING = 10  # seconds
START = 20  # seconds, after which a daemon holds no memory that only a start needs
AT_ONCE, PER_SECOND = 32, 8  # handshakes of strangers
REJECTED = "slurmlet_endpoint_rejected_connections_total"
MIB = 2**20
# 64 connections with a TLS session and three heads of 16 KiB at most, and the allocator's share.
PEAK = 8 * MIB
# What may be left when they are gone: the caches of the reviews and the allocator's share.
REMAINS = 3 * MIB


def prepare(rig):
    rig.ports = {"port": free_port(), "healthzPort": free_port()}
    rig.configure(endpoint=rig.ports)


class Strangers:
    """Clients without a credential that come again whenever they are thrown out, from loopback
    addresses that start with `network`. `got` counts what became of them."""

    def __init__(self, port, network, half_open_hosts):
        self.port, self.network, self.half_open_hosts = port, network, half_open_hosts
        self.got = collections.Counter()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE
        self.loop = asyncio.new_event_loop()
        self.over = asyncio.Event()
        self.thread = threading.Thread(target=self.loop.run_until_complete, args=[self._attack()])

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.over.set)
        self.thread.join()
        self.loop.close()

    async def _attack(self):
        """The half-open ones last: they would hold all places for ten seconds, and turn the others away."""
        tasks = [asyncio.create_task(self._again(kind, name, host, True))
                 for kind, name, count, host in ((self._slowly, "slow", 12, 100), (self._headers, "headers", 4, 101),
                                                 (self._chunks, "chunks", 4, 102)) for _ in range(count)]
        while not self.came_through() and not self.over.is_set():
            await asyncio.sleep(0.05)
        tasks += [asyncio.create_task(self._again(
            self._half_open, "half-open", 10 + number % self.half_open_hosts, False)) for number in range(HALF_OPEN)]
        await self.over.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def came_through(self):
        """Whether each kind but the half-open has done what it came for."""
        return min(self.got["slow"], self.got["headers: 431"], self.got["chunks: 501"]) > 0

    async def _again(self, kind, name, host, tls):
        while True:
            writer = None
            try:
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", self.port, local_addr=(f"{self.network}.{host}", 0),
                    ssl=self.context if tls else None)
                self.got[name] += 1
                self.got[f"{name}: {await kind(reader, writer)}"] += 1
            except (OSError, EOFError):
                self.got[f"{name}: thrown out"] += 1
            finally:
                if writer:
                    writer.transport.abort()
            await asyncio.sleep(0.3)

    async def _half_open(self, reader, _writer):
        """Never says a word."""
        return await self._status(reader)

    async def _slowly(self, reader, writer):
        """A header that never ends, a byte at a time."""
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: n\r\nX-Slow: ")
        answer = asyncio.create_task(self._status(reader))
        while not answer.done():
            writer.write(b"a")
            await asyncio.wait([answer], timeout=0.2)
        return await answer

    async def _headers(self, reader, writer):
        return await self._flood(reader, writer, b"GET /metrics HTTP/1.1\r\nHost: n\r\n",
                                 b"X-Flood: abcdefgh\r\n" * 200)

    async def _chunks(self, reader, writer):
        return await self._flood(
            reader, writer,
            b"POST /run/a/b/c HTTP/1.1\r\nHost: n\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"1000\r\n" + b"x" * 4096 + b"\r\n")

    async def _flood(self, reader, writer, head, piece):
        """`piece` for ever; the status that was seen before the connection ended."""
        answer = asyncio.create_task(self._status(reader))
        try:
            writer.write(head)
            while True:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.001)
        except OSError:
            return await answer
        finally:
            answer.cancel()

    @staticmethod
    async def _status(reader):
        line = await reader.readline()
        return line.split()[1].decode() if line else "thrown out"


class Vitals:
    """The daemon's memory and descriptors; over the time of a `with` block, the most of each."""

    def __init__(self, pid):
        self.process = pathlib.Path(f"/proc/{pid}")
        self.peak = {"rss": 0, "fds": 0}
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch)

    def now(self):
        status = (self.process / "status").read_text()
        return {"rss": int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024,
                "fds": len(list((self.process / "fd").iterdir()))}

    def wait_descriptors(self, before):
        """Until they are back; returns what is then."""
        wait_until(lambda: self.now()["fds"] <= before["fds"], what="descriptors to be back")
        return self.now()

    def _watch(self):
        while not self.over.wait(0.2):
            self.peak = {key: max(self.peak[key], value) for key, value in self.now().items()}

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


@pytest.fixture(scope="module", name="friend")
def authorised_client(shared_rig, plane):
    account = ServiceAccount(plane, "friend")
    account.grant("friend", [{"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]}])
    return KubeletClient(shared_rig.ports["port"], token=account.token())


def attack(port, network, half_open_hosts, friend):
    """A round of it: what the strangers got, and the friend meanwhile, each half second."""
    served = []
    end = time.monotonic() + ROUND
    with Strangers(port, network, half_open_hosts) as strangers:
        while time.monotonic() < end:
            try:
                served.append(friend.request("GET", "/metrics", timeout=5).status)
            except OSError as error:
                served.append(str(error))
            time.sleep(0.5)
    assert strangers.came_through() and strangers.got["half-open"] > HALF_OPEN, strangers.got
    return strangers.got, served


@pytest.mark.slow
@pytest.mark.parametrize("addresses", [["127.0.3.2"] * 8, [f"127.0.4.{host}" for host in range(1, 49)]],
                         ids=["eight at once", "many addresses"])
def test_handshakes_are_few_and_a_friend_is_served(shared_rig, friend, record_property, addresses):
    """What they cost: bench/bench.py."""
    assert friend.get("/metrics").status == 200
    waited = []
    began = time.monotonic()
    with Shakers(shared_rig.ports["port"], addresses) as shakers:
        while time.monotonic() < began + SHAKING:
            asked = time.monotonic()
            assert friend.request("GET", "/metrics", timeout=5).status == 200
            waited.append(time.monotonic() - asked)
            time.sleep(0.5)
    took = time.monotonic() - began
    for name, value in (("handshakes", dict(shakers.got)),
                        ("longest a friend waited", max(waited))):
        record_property(name, value)
        print(f"{name}: {value}")
    # They did what they came for, within the limits.
    assert SHAKING < shakers.got["done"] <= AT_ONCE + PER_SECOND * took
    assert len(waited) > SHAKING / 2


@pytest.mark.slow
def test_garbage_tokens_leave_a_rotated_one_its_review(shared_rig, plane, friend):
    assert friend.get("/metrics").status == 200
    account = ServiceAccount(plane, "friend")
    got, over = collections.Counter(), threading.Event()

    def guess(address):
        while not over.is_set():
            client = http.client.HTTPSConnection("127.0.0.1", friend.port, timeout=5,
                                                 context=friend.context,
                                                 source_address=(address, 0))
            with contextlib.suppress(OSError, http.client.HTTPException), \
                    contextlib.closing(client):
                while not over.is_set():
                    client.request("GET", "/metrics", headers={
                        "Authorization": "Bearer " + secrets.token_hex(16)})
                    answer = client.getresponse()
                    answer.read()
                    got[answer.status] += 1
    threads = [threading.Thread(target=guess, args=[f"127.0.7.{host}"]) for host in range(1, 9)]
    for thread in threads:
        thread.start()
    try:
        # Each costs them a handshake, of which they have no more than of reviews.
        wait_until(lambda: got.total() > 60, what="the bursts to be used up")
        for _ in range(5):
            seen = got.total()
            rotated = KubeletClient(friend.port, token=account.token())
            assert rotated.request("GET", "/metrics").status == 200
            wait_until(lambda: got.total() > seen + 10, what="the flood to go on")
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert 401 in got and set(got) <= {401, 429, 503}  # 503: a review that took too long


@pytest.mark.alone
@pytest.mark.slow
def test_strangers_change_neither_memory_nor_lease_nor_what_friends_get(
        shared_rig, friend, record_property):
    """First from four addresses, so that others always have room. Then the half-open ones from
    fifty, so that everybody's connections are short: a friend may have to ask again."""
    port = shared_rig.ports["port"]
    started = one(friend.get("/metrics").text, "process_start_time_seconds")
    wait_until(lambda: time.time() > started + START, what="the memory of the start to be given back")
    for _ in range(20):
        assert friend.get("/metrics").status == 200
    began = time.time()
    vitals = Vitals(shared_rig.daemon.pid)
    before = vitals.now()
    with vitals:
        got, served = attack(port, "127.0.1", 1, friend)
        first = vitals.wait_descriptors(before)
        got_by_many, served_among_many = attack(port, "127.0.2", 50, friend)
        second = vitals.wait_descriptors(before)
    renewals = [*shared_rig.audit.renewals(), time.time()]
    gaps = [later - earlier for earlier, later in zip(renewals, renewals[1:]) if later > began]
    for name, value in (("before", before), ("peak", vitals.peak), ("after", first),
                        ("after two", second), ("lease gaps", gaps), ("got", dict(got)),
                        ("got by many", dict(got_by_many))):
        record_property(name, value)
        print(f"{name}: {value}")

    assert vitals.peak["rss"] - before["rss"] < PEAK
    assert first["rss"] - before["rss"] < REMAINS
    assert second["rss"] - first["rss"] < MIB
    assert vitals.peak["fds"] - before["fds"] < 80
    assert len(gaps) > 2 and max(gaps) <= LEASE_GAP
    assert len(served) > ROUND and set(served) == {200}
    assert served_among_many.count(200) > len(served_among_many) / 2

    text = friend.get("/metrics").text
    rejected = {labels["cause"]: value for labels, value in samples(text)[
        REJECTED]}
    assert rejected["evicted"] + rejected["limit"] > HALF_OPEN
    assert rejected["malformed"] >= got["headers: 431"] + got["chunks: 501"]
    assert one(text, "slurmlet_endpoint_connections") <= 2
