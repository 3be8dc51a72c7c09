"""A TCP listener whose clients are served by a thread each, as a context."""
import contextlib
import socket
import threading


class Listener:
    """Subclasses say in serve(client) what happens with a connection."""

    def __init__(self, address):
        self._listener = socket.create_server(address)
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def serve(self, client):
        raise NotImplementedError

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed: the end
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()
