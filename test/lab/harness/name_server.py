"""A DNS server for one name, which can fall silent."""
import os
import socket
import struct
import threading


class NameServer:
    """Answers on port 53 of a loopback address of its own, as a context: `name` is 127.0.0.1."""

    def __init__(self, name):
        self.address = f"127.53.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
        self._question = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((self.address, 53))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.silent = False
        self.answered = 0

    def _serve(self):
        while True:
            query, client = self._socket.recvfrom(4096)
            if not query:
                return
            if self.silent:
                continue
            self.answered += 1
            end = query.index(b"\0", 12) + 1
            question, kind = query[12:end + 4], struct.unpack(">H", query[end:end + 2])[0]
            known = query[12:end - 1].lower() == self._question
            found = known and kind == 1  # A
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4" + socket.inet_aton("127.0.0.1")
            flags = 0x8180 if known else 0x8183  # no such name
            self._socket.sendto(
                query[:2] + struct.pack(">HHHHH", flags, 1, int(found), 0, 0) + question
                + (answer if found else b""), client)

    def program(self, directory, program):
        """A program that runs `program` with this as its only name server."""
        conf, script = directory / "resolv.conf", directory / "with-name-server"
        conf.write_text(f"nameserver {self.address}\noptions timeout:5 attempts:2\n")
        script.write_text(
            "#!/bin/sh\nexec unshare --mount sh -c 'mount --bind "
            f"{conf} /etc/resolv.conf && exec {program} \"$@\"' sh \"$@\"\n")
        script.chmod(0o755)
        return script

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._socket.sendto(b"", (self.address, 53))
        self._thread.join(5)
        self._socket.close()
