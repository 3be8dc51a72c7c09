"""How each daemon of a cluster is started, and how it shows that it answers."""

import os
import pwd
import socket

from .config import ClusterError
from .isolation import as_host, own_run

REST_DAEMONS = ("slurmrestd", "slurmrestd-jwt")
CONTROLLERS = ("slurmctld", "slurmctld-backup")


def start_of(cluster, name):
    """(words, environment, user) for ProcessTable.spawn."""
    if name == "munged":
        return _munged(cluster)
    if name in CONTROLLERS:
        return _slurmctld(cluster, name)
    if name in REST_DAEMONS:
        return _slurmrestd(cluster, name)
    return _slurmd(cluster, name.partition(".")[2])


def _munged(cluster):
    layout = cluster.layout
    words = ["-F", f"--key-file={layout.munge_key}", f"--socket={layout.munge_socket}",
             f"--pid-file={layout.at('munge', 'munged.pid')}", f"--log-file={layout.at('log', 'munged.log')}",
             f"--seed-file={layout.at('munge', 'munged.seed')}"]
    return [*cluster.program("munged"), *words], cluster.own_env(), None


def _slurmctld(cluster, name):
    words = [*cluster.program("slurmctld"), "-D"]
    if cluster.spec.controllers:
        host = cluster.spec.controllers[name][0]
        words = [*as_host(host, cluster.layout.at("etc", "hosts"), cluster.layout.at("run")), *words]
    return words, cluster.own_env(), None


def _slurmrestd(cluster, name):
    if os.geteuid() != 0:
        raise ClusterError("slurmrestd refuses to run as SlurmUser; only root can start it as another user")
    layout, user = cluster.layout, pwd.getpwnam("nobody")
    if name == "slurmrestd-jwt":
        user = pwd.getpwnam("daemon")  # a system user: slurmlet trusts nobody else's port
        environment = cluster.own_env(SLURM_JWT="daemon")
        words = ["-a", "rest_auth/jwt", "-s", _openapi(cluster), f"127.0.0.1:{cluster.spec.ports[name]}"]
    else:
        environment = cluster.own_env()
        os.chown(layout.at("restd"), user.pw_uid, user.pw_gid)
        if os.path.exists(layout.restd_socket):
            os.unlink(layout.restd_socket)  # left by SIGKILL; it would refuse to start
        words = ["-a", "rest_auth/local", "-s", _openapi(cluster), f"unix:{layout.restd_socket}"]
    # A chroot needs root: there the user is changed after it.
    return [*cluster.program("slurmrestd", user), *words], environment, None if cluster.spec.root else user


def _openapi(cluster):
    """Without slurmdbd, the plugins for it must not be loaded."""
    return "openapi/slurmctld" if cluster.release >= (23, 11) else "openapi/v0.0.38"


def _slurmd(cluster, node):
    spec = cluster.spec
    more = spec.slurmd_arguments.get(node, [])
    # A dynamic future node (-F) is told its name by slurmctld.
    named = [] if node in spec.hosts or any(word.startswith("-F") for word in more) else ["-N", node]
    words = [*cluster.program("slurmd"), "-D", *named, *more]
    if node in spec.hosts:
        words = [*as_host(spec.hosts[node][0], cluster.layout.at("etc", f"hosts.{node}"),
                          cluster.layout.at("run")), *words]
    environment = cluster.own_env()
    if spec.configless:
        del environment["SLURM_CONF"]
        words = [*own_run(cluster.layout.at("munge")), *words, "--conf-server",
                 f"127.0.0.1:{spec.ports['slurmctld']}"]
    return words, environment, None


def answers(cluster, name):
    """True when the daemon does what it is there for."""
    spec, layout = cluster.spec, cluster.layout
    if name == "munged":
        return os.path.exists(layout.munge_socket) and cluster.succeeds(
            "munge", "--no-input", f"--socket={layout.munge_socket}")
    if name in CONTROLLERS:
        address = spec.controllers[name][1] if spec.controllers else "127.0.0.1"
        if not listens(spec.ports["slurmctld"], address):
            return False
        # A backup listens, and leaves the answers to the primary.
        return name == "slurmctld-backup" or cluster.succeeds("scontrol", "ping")
    if name == "slurmrestd-jwt":
        return listens(spec.ports[name])
    if name == "slurmrestd":
        return _answers_http(layout.restd_socket)
    node = name.partition(".")[2]
    # Clients look for a node they are told by name in slurm.conf, where a dynamic one is not.
    named = {} if node in spec.slurmd_arguments else {"SLURMD_NODENAME": node}
    return listens(spec.ports[name]) and cluster.succeeds(
        "scontrol", "show", "slurmd", environment=cluster.own_env(**named))


def listens(port, address="127.0.0.1"):
    """A listener in the kernel's table: a connection would be logged as an error by slurmd."""
    wanted = {f"{socket.inet_aton(one)[::-1].hex().upper()}:{port:04X}" for one in (address, "0.0.0.0")}
    with open("/proc/net/tcp", encoding="ascii") as table:
        return any(row[1] in wanted and row[3] == "0A" for row in map(str.split, table))


def _answers_http(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(5)
        try:
            connection.connect(path)
            connection.sendall(b"GET /openapi/v3 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return connection.recv(64).startswith(b"HTTP/1.1 ")
        except OSError:
            return False
