"""Two network namespaces with a bridge between them that can be taken down: packets are then lost
without a word to either side."""
import contextlib

from namespaces import Namespaces, listener_in

FAR, NEAR = "10.96.0.1", "10.96.0.2"  # the first is in every API server's certificate


class Far(contextlib.AbstractContextManager):
    """The daemon's side is `near`, the other has the address FAR."""

    address = FAR

    def __init__(self):
        self.near, self.far = Namespaces("net"), Namespaces("net")
        try:
            self._wire()
        except BaseException:
            self.__exit__()
            raise

    def _wire(self):
        self._far("ip", "link", "add", "bridge", "type", "bridge")
        self._far("ip", "link", "add", "port", "type", "veth", "peer", "name", "eth0", "netns",
                  str(self.near.pid))
        self._far("ip", "link", "set", "port", "master", "bridge", "up")
        self._far("ip", "address", "add", f"{FAR}/24", "dev", "bridge")
        self._far("ip", "link", "set", "bridge", "up")
        self._near("ip", "link", "set", "lo", "up")
        self._near("ip", "address", "add", f"{NEAR}/24", "dev", "eth0")
        self._near("ip", "link", "set", "eth0", "up")
        # A router's address stays known when what is behind it has gone.
        place = self._far("ip", "-br", "link", "show", "bridge").split()[2]
        self._near("ip", "neighbour", "replace", FAR, "lladdr", place, "dev", "eth0", "nud",
                   "permanent")

    def _near(self, *command):
        return self.near.run(*command)

    def _far(self, *command):
        return self.far.run(*command)

    def enter(self):
        """The words that run a program on the daemon's side."""
        return self.near.enter()

    def listener(self, port):
        return listener_in(self.far.net, (FAR, port))

    def cut(self):
        self._far("ip", "link", "set", "bridge", "down")

    def mend(self):
        self._far("ip", "link", "set", "bridge", "up")

    def __exit__(self, *_):
        self.near.close()
        self.far.close()
