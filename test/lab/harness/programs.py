"""Other people's programs that tests run: where they are, and how they are started and ended."""
import http.client
import pathlib
import subprocess

from slurmcluster.config import free_ports

from .api import repository

CLIENTS = repository() / "build/clients/usr/bin"
OLD_KUBECTL = CLIENTS / "kubectl"  # Debian 12's, 1.20
PROMETHEUS = CLIENTS / "prometheus"
PROMTOOL = CLIENTS / "promtool"
METRICS_SERVER = repository() / "build/tools/metrics-server"
CLUSTER_API = repository() / "build/tools/core"


def free_port():
    """A port on which nobody listens now, and that is not given to somebody's connection meanwhile."""
    return free_ports(1)[0]


def get_page(port, path):
    """(status, text) of a program on loopback that serves HTTP, or (0, "") where nobody answers yet."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except ConnectionError:
        return 0, ""
    finally:
        connection.close()


def end(process):
    """SIGTERM, and SIGKILL to one that does not heed it."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Program:
    """A server in its own directory, with its output in a log there."""

    def __init__(self, directory, command, name):
        assert pathlib.Path(command[0]).exists(), f"{command[0]} is missing; run ./dev system"
        self.directory = pathlib.Path(directory)
        self.log_path = self.directory / f"{name}.log"
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, cwd=self.directory)

    def log(self):
        return self.log_path.read_text(errors="replace")

    def alive(self):
        """Raises with the end of its log when it has ended."""
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.process.args[0]} ended with {self.process.returncode}:\n"
                               f"{self.log()[-3000:]}")
        return True

    def stop(self):
        end(self.process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
