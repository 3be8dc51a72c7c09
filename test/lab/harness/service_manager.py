"""The service manager's end of sd_notify(3), for a daemon that is started as systemd would start
it."""
import select
import socket
import time


class ServiceManager:
    """Listens at `path`; messages are dictionaries of a datagram's lines."""

    def __init__(self, path):
        self.path = str(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.seen = []

    def environment(self, watchdog_seconds=0):
        """What systemd would set. Without WATCHDOG_PID, since the pid is not known yet."""
        own = {"NOTIFY_SOCKET": self.path}
        if watchdog_seconds:
            own["WATCHDOG_USEC"] = str(int(watchdog_seconds * 1e6))
        return own

    def next(self, timeout):
        """The next message, or None when none came in time."""
        if not select.select([self.socket], [], [], max(0, timeout))[0]:
            return None
        lines = self.socket.recv(65536).decode().splitlines()
        message = dict(line.split("=", 1) for line in lines)
        self.seen.append(message)
        return message

    def wait(self, predicate, timeout=60):
        """The first message from now on of which the predicate holds."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            message = self.next(deadline - time.monotonic())
            if message is not None and predicate(message):
                return message
        raise TimeoutError(f"waited {timeout} s; heard {self.seen[-20:]}")

    def wait_status(self, text, timeout=60):
        return self.wait(lambda message: text in message.get("STATUS", ""), timeout)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
