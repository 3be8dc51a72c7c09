"""An HTTPS proxy before the API server that lets requests wait and cuts connections."""
import base64
import contextlib
import json
import os
import select
import socket
import ssl
import threading
import time

from .api import Api, read_kubeconfig
from .certificates import Authority
from .listener import Listener


class SlowFront(Listener):
    """Listens on 127.0.0.1 and asks the API server as the node of the Rig, as a context. The Rig's
    daemon gets a kubeconfig for it, with the server's `name` if that is given."""

    def __init__(self, rig, name="127.0.0.1"):
        super().__init__(("127.0.0.1", 0))
        self._api = Api(rig.kubeconfig)
        authority = Authority(rig.directory / "front")
        own = authority.issue("front", "front", names=["IP:127.0.0.1", "DNS:front.test"])
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*own)
        rig.kubeconfig = self._kubeconfig(rig, authority, name)
        self._seconds, self._is_fast = 0, lambda method, path: True
        self._clients, self._frozen, self._lock = set(), set(), threading.Lock()
        self.requests = []  # (method, path), in the order in which they came

    def _kubeconfig(self, rig, authority, name):
        config = read_kubeconfig(rig.kubeconfig)
        config["clusters"][0]["cluster"] = {
            "server": f"https://{name}:{self.port}",
            "certificate-authority-data": base64.b64encode(authority.crt.read_bytes()).decode()}
        path = rig.directory / "front.kubeconfig"
        path.touch(0o600)
        path.write_text(json.dumps(config))
        return path

    def slow_down(self, seconds, is_fast):
        """From now on each request waits that long before it is passed on, unless
        is_fast(method, path)."""
        self._seconds, self._is_fast = seconds, is_fast

    def wait_of(self, request):
        """How long this one, bytes with its head and body, waits."""
        method, path = request.decode(errors="replace").split(" ", 2)[:2]
        return 0 if self._is_fast(method, path) else self._seconds

    def keeps_answer(self, _):
        """Whether what comes back from this request is not passed on."""
        return False

    def freeze(self):
        """From now on the connections that there are pass nothing on, either way; new ones do."""
        with self._lock:
            self._frozen |= self._clients

    def cut(self):
        """Ends all connections."""
        with self._lock:
            for each in self._clients:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def serve(self, client):
        wire = socket.socket(fileno=os.dup(client.fileno()))  # of the thread that cuts it
        with self._lock:
            self._clients.add(wire)
        try:
            with self._context.wrap_socket(client, server_side=True) as inside, \
                    socket.create_connection((self._api.host, self._api.port), 30) as plain, \
                    self._api.context.wrap_socket(plain, server_hostname=self._api.host) as outside:
                self._relay(inside, outside, lambda: wire in self._frozen)
        except OSError:
            pass  # one of the two went away; the other sees it by the close
        finally:
            with self._lock:
                self._clients.remove(wire)
            wire.close()

    def _relay(self, inside, outside, is_frozen):
        asked, due = b"", None  # what has come, and when to pass it on
        sent = b""
        while True:
            if due is not None and time.monotonic() >= due:
                outside.sendall(asked)
                sent, asked, due = asked, b"", None
            ready = [side for side in (inside, outside) if side.pending()]
            if not ready:
                wait = None if due is None else max(0, due - time.monotonic())
                ready, _, _ = select.select([inside, outside], [], [], wait)
            if outside in ready:
                data = received(outside)
                if data == b"":
                    return
                if data and not self.keeps_answer(sent) and not is_frozen():
                    inside.sendall(data)
            if inside in ready:
                data = received(inside)
                if data == b"":
                    return
                asked += b"" if is_frozen() else data or b""
                if due is None and is_whole(asked):
                    method, path = asked.split(b" ", 2)[:2]
                    self.requests.append((method.decode(), path.decode()))
                    due = time.monotonic() + self.wait_of(asked)


def received(side):
    """What has come, b"" at the end; None for a record without data (a session ticket)."""
    side.settimeout(0)
    try:
        return side.recv(65536)
    except ssl.SSLWantReadError:
        return None
    finally:
        side.settimeout(30)


def is_whole(request):
    """Whether the head and the body of an HTTP/1.1 request are there."""
    head, end, body = request.partition(b"\r\n\r\n")
    length = [line.split(b":")[1] for line in head.lower().split(b"\r\n")
              if line.startswith(b"content-length:")]
    return bool(end) and len(body) >= (int(length[0]) if length else 0)
