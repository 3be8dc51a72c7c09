"""An address that moves between hosts, as keepalived or pacemaker move one between two slurmctld.

On one machine the hosts are loopback addresses, so the move is that of a TCP forwarder's target.
"""
import contextlib
import socket
import struct
import threading

from .listener import Listener


class VirtualAddress(Listener):
    """Listens on host:port and forwards to target:port, as a context."""

    def __init__(self, host, port, target):
        super().__init__((host, port))
        self._target = target
        self.connections = 0

    def move(self, target):
        """The next connections go there."""
        self._target = target

    def serve(self, client):
        self.connections += 1
        with client:
            try:
                server = socket.create_connection((self._target, self.port), timeout=30)
            except OSError:
                # Nobody there: a reset, as a load balancer sends.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            with server:
                back = threading.Thread(target=_copy, args=(server, client), daemon=True)
                back.start()
                _copy(client, server)
                back.join(30)


def _copy(source, destination):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            destination.sendall(data)
    with contextlib.suppress(OSError):
        destination.shutdown(socket.SHUT_WR)
