"""A client of the kubelet API of one node: raw requests with the credential of one's choice."""
import http.client
import json
import pathlib
import socket
import ssl
import time

from .certificates import openssl


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.text = status, headers, body.decode(errors="replace")

    def json(self):
        return json.loads(self.text)

    def __repr__(self):
        return f"{self.status} {self.text[:300]}"


class KubeletClient:
    """`certificate` is (certificate file, key file). Without `ca` the server is not verified."""

    def __init__(self, port, host="127.0.0.1", ca=None, certificate=None, token=None):
        self.port, self.host, self.token = port, host, token
        self.context = ssl.create_default_context(cafile=ca and str(ca))
        if not ca:
            self.context.check_hostname = False
            self.context.verify_mode = ssl.CERT_NONE
        if certificate:
            self.context.load_cert_chain(*map(str, certificate))

    def request(self, method, path, timeout=40):
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=timeout,
                                                 context=self.context)
        headers = {"Authorization": "Bearer " + self.token} if self.token else {}
        try:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def patient(self, method, path, timeout=40):
        """Again after 429 (Too Many Requests): the node asks the API server only so often."""
        deadline = time.monotonic() + timeout
        while True:
            answer = self.request(method, path)
            if answer.status != 429 or time.monotonic() > deadline:
                return answer
            time.sleep(float(answer.headers.get("Retry-After", 1)))

    def get(self, path):
        return self.patient("GET", path)


class ServingCertificate:
    """What a server shows in the handshake now."""

    def __init__(self, port, host="127.0.0.1"):
        self.pem = ssl.get_server_certificate((host, port), timeout=10)
        path = pathlib.Path(f"/tmp/serving-{port}.pem")
        path.write_text(self.pem)
        try:
            text = openssl("x509", "-in", path, "-noout", "-subject", "-issuer", "-ext",
                           "subjectAltName", "-nameopt", "RFC2253")
        finally:
            path.unlink()
        lines = text.splitlines()
        self.subject = lines[0].split("=", 1)[1]
        self.issuer = lines[1].split("=", 1)[1]
        self.names = {part.strip().replace("IP Address:", "IP:")
                      for line in lines[2:] for part in line.split(",") if ":" in part
                      and "X509v3" not in part}

    @property
    def self_signed(self):
        return self.subject == self.issuer


def listening(pid):
    """{(address, port)} of the TCP sockets on which a process listens."""
    inodes = set()
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(link.readlink())
        except OSError:
            continue  # closed meanwhile
        if target.startswith("socket:["):
            inodes.add(target[len("socket:["):-1])
    found = set()
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                address, port = fields[1].split(":")
                raw = b"".join(bytes.fromhex(address[i:i + 8])[::-1]
                               for i in range(0, len(address), 8))
                found.add((socket.inet_ntop(family, raw), int(port, 16)))
    return found
