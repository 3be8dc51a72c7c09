"""A TLS server before a plain TCP one on this machine, as a reverse proxy ends TLS for slurmrestd."""
import selectors
import socket
import ssl

from .listener import Listener


class TlsFront(Listener):
    """Listens on 127.0.0.1 with this certificate and forwards to `port` there, as a context. How
    many clients it refused or lost in the handshake is in `failed_handshakes`."""

    def __init__(self, port, certificate, key):
        super().__init__(("127.0.0.1", 0))
        self._target = ("127.0.0.1", port)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.load(certificate, key)
        self.url = f"https://127.0.0.1:{self.port}"
        self.failed_handshakes = 0

    def load(self, certificate, key):
        """Uses another certificate from the next connection on."""
        self._context.load_cert_chain(certificate, key)

    def serve(self, client):
        client.settimeout(30)
        try:
            with self._context.wrap_socket(client, server_side=True) as inside:
                with socket.create_connection(self._target, timeout=30) as outside:
                    _forward(inside, outside)
        except ssl.SSLError:
            self.failed_handshakes += 1
        except OSError:
            pass  # one of the two went away; the other sees it by the close


def _forward(tls, plain):
    """Until either side has closed."""
    with selectors.DefaultSelector() as ready:
        ready.register(tls, selectors.EVENT_READ, plain)
        ready.register(plain, selectors.EVENT_READ, tls)
        while True:
            for key, _ in ready.select():
                data = key.fileobj.recv(65536)
                # What TLS has decrypted already makes no socket readable.
                while key.fileobj is tls and tls.pending():
                    data += tls.recv(65536)
                if not data:
                    return
                key.data.sendall(data)
