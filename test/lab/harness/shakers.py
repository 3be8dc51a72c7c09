"""A flood of TLS handshakes."""
import collections
import socket
import ssl
import threading


class Shakers:
    """Clients that do nothing but TLS handshakes, as fast as they can, from these addresses."""

    def __init__(self, port, addresses):
        self.port, self.got = port, collections.Counter()
        self.over = threading.Event()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE
        self.threads = [threading.Thread(target=self._shake, args=[address])
                        for address in addresses]

    def _shake(self, address):
        while not self.over.is_set():
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=2,
                                              source_address=(address, 0)) as client:
                    with self.context.wrap_socket(client):
                        self.got["done"] += 1
            except OSError:
                self.got["not done"] += 1

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()
