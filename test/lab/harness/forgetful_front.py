"""A passage to the API server that forgets connections, as a firewall or a load balancer may."""
import json
import selectors
import socket

from .api import Api, read_kubeconfig
from .listener import Listener


class ForgetfulFront(Listener):
    """Listens on 127.0.0.1 and carries bytes to and from the API server, as a context. The Rig's
    daemon gets a kubeconfig that leads through it."""

    def __init__(self, rig):
        super().__init__(("127.0.0.1", 0))
        api = Api(rig.kubeconfig)
        self._target = (api.host, api.port)
        config = read_kubeconfig(rig.kubeconfig)
        config["clusters"][0]["cluster"].update({
            "server": f"https://127.0.0.1:{self.port}", "tls-server-name": api.host})
        rig.kubeconfig = rig.directory / "forgetful.kubeconfig"
        rig.kubeconfig.touch(0o600)
        rig.kubeconfig.write_text(json.dumps(config))
        self._forgotten = 0
        self.connections = 0

    def forget(self):
        """The connections there are carry nothing any more, and nobody closes them; new ones do."""
        self._forgotten = self.connections

    def serve(self, client):
        self.connections += 1
        number = self.connections
        with client, socket.create_connection(self._target, timeout=30) as server, \
                selectors.DefaultSelector() as ready:
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in ready.select():
                    try:
                        data = key.fileobj.recv(65536)
                        if number > self._forgotten and data:
                            key.data.sendall(data)
                    except OSError:
                        return
                    if not data and (number > self._forgotten or key.fileobj is client):
                        return
                    if not data:
                        ready.unregister(server)  # its end is not passed on either
