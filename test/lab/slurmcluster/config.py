"""What a cluster consists of: its description, its paths and its files."""

import dataclasses
import os
import pwd
import random
import shutil
import socket

SBIN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SUN_PATH_MAX = 107  # sizeof(sockaddr_un.sun_path) - 1 on Linux

# Which Debian package brings a missing program.
PACKAGES = {
    "munged": "munge", "munge": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd",
    "slurmrestd": "slurmrestd", "sinfo": "slurm-client", "scontrol": "slurm-client",
    "sbatch": "slurm-client", "scancel": "slurm-client", "squeue": "slurm-client",
    "sdiag": "slurm-client",
}


class ClusterError(Exception):
    """Anything the caller should read as one sentence."""


def find_program(name):
    """Absolute path of a Slurm or munge program, looking in sbin as well."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":" + SBIN_PATH)
    if path is None:
        raise ClusterError(f"program '{name}' not found; on Debian: apt-get install {PACKAGES.get(name, name)}")
    return path


def real_memory_mib():
    """MemTotal of this machine in MiB."""
    with open("/proc/meminfo", encoding="ascii") as meminfo:
        for line in meminfo:
            if line.startswith("MemTotal:"):
                return int(line.split()[1]) // 1024
    raise ClusterError("no MemTotal in /proc/meminfo")


_claims = []  # held until this process ends


def claim_port(port):
    """Makes the port this process's; False if another one, or an earlier call, has it.

    Between the choice of a port and its daemon's bind() lie seconds, in which clusters and control planes
    that start beside us choose too (test/lab/controlplane/ports.go claims in the same way). An abstract
    socket belongs to the network namespace, as ports do, and ends with its process.
    """
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        claim.bind(f"\0slurmlet-lab-port-{port}")
    except OSError:
        claim.close()
        return False
    _claims.append(claim)
    return True


def free_ports(count):
    """Ports nobody listens on now, and that no other test will choose while this process lives.

    They are taken from below the kernel's range for outgoing connections
    where possible: a port given out by bind(0) may later be the local end
    of somebody's connection, and a daemon restarted then cannot bind.
    """
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as limits:
        first_ephemeral = int(limits.read().split()[0])
    held = []
    try:
        for attempt in range(count + 200):
            if len(held) == count:
                break
            wanted = random.randrange(10000, first_ephemeral) if first_ephemeral > 12000 and attempt < 200 else 0
            candidate = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                candidate.bind(("0.0.0.0", wanted))
            except OSError:
                candidate.close()
                continue
            if claim_port(candidate.getsockname()[1]):
                held.append(candidate)
            else:
                candidate.close()
        return [sock.getsockname()[1] for sock in held]
    finally:
        for sock in held:
            sock.close()


@dataclasses.dataclass
class ClusterSpec:
    """Everything `up` can be told."""

    nodes: list = dataclasses.field(default_factory=lambda: ["nid000001"])
    cpus: int = None
    memory: int = None
    gpus: str = ""
    cluster_name: str = "alps"
    slurmd_timeout: int = 300
    slurmrestd: bool = False  # on a unix socket
    jwt: bool = False  # auth/jwt, and a slurmrestd ("slurmrestd-jwt") on a port that wants a token
    power_save: bool = False
    # Another root with the programs (root.sh); "" = the machine's own.
    root: str = ""
    # {"slurmctld": (host name, address), "slurmctld-backup": …}: two of them; {} = one, on this host.
    controllers: dict = dataclasses.field(default_factory=dict)
    # slurmd fetches its configuration from slurmctld, in a /run of its own.
    configless: bool = False
    # Nodes whose slurmd has no -N and sees a host of its own: {node: [host name, more lines of its
    # /etc/hosts, NodeHostname in slurm.conf or ""]}.
    hosts: dict = dataclasses.field(default_factory=dict)
    # NodeHostname by node, where not all are on this host.
    node_hosts: dict = dataclasses.field(default_factory=dict)
    # More arguments of slurmd, by node.
    slurmd_arguments: dict = dataclasses.field(default_factory=dict)
    # Nodes that no line of slurm.conf names, because slurmd is to register them.
    dynamic: list = dataclasses.field(default_factory=list)
    conf_lines: list = dataclasses.field(default_factory=list)
    node_line_extra: str = ""
    ports: dict = dataclasses.field(default_factory=dict)
    # Set while the state "inval" is on: {"node": name, "how": "gpus" or "memory"}.
    invalid: dict = dataclasses.field(default_factory=dict)

    def complete(self):
        """Fill in what depends on this machine, and check the rest."""
        if not self.nodes or len(set(self.nodes)) != len(self.nodes):
            raise ClusterError("node names must be given and be different")
        self.root = os.path.abspath(self.root) if self.root else ""
        self.cpus = self.cpus or os.cpu_count()
        self.memory = self.memory or real_memory_mib() * 9 // 10
        if self.gpus and not self.gpus.rpartition(":")[2].isdigit():
            raise ClusterError(f"gpus wants [TYPE:]COUNT, not '{self.gpus}'")
        if not self.ports:
            names = ["slurmctld", *(f"slurmd.{node}" for node in self.nodes), *(["slurmrestd-jwt"] if self.jwt else [])]
            self.ports = dict(zip(names, free_ports(len(names))))

    @property
    def gpu_count(self):
        """Fake GPUs per node."""
        return int(self.gpus.rpartition(":")[2]) if self.gpus else 0

    @property
    def gpu_type(self):
        """Type of the fake GPUs, or an empty string."""
        return self.gpus.rpartition(":")[0]


class Layout:
    """Where things lie under DIR."""

    def __init__(self, directory):
        self.root = os.path.abspath(directory)
        self.conf = self.at("etc", "slurm.conf")
        self.gres = self.at("etc", "gres.conf")
        self.munge_socket = self.at("munge", "munge.socket.2")
        self.munge_key = self.at("munge", "munge.key")
        self.jwt_key = self.at("etc", "jwt_hs256.key")
        self.restd_socket = self.at("restd", "slurmrestd.sock")
        self.pids = self.at("pids")
        self.log = self.at("log")

    def at(self, *parts):
        """A path under DIR."""
        return os.path.join(self.root, *parts)

    def check_socket_paths(self, spec):
        """Fail early where a daemon would only log a truncated sun_path."""
        if spec.root and not self.root.startswith("/tmp/"):
            raise ClusterError(f"{self.root} is not under /tmp, which is all of this machine that the other root sees")
        longest = [self.munge_socket, self.restd_socket]
        for node in spec.nodes:
            # slurmstepd: largest job id, batch step
            longest.append(self.at("spool", node, f"{node}_67043328.4294967291"))
        worst = max(longest, key=len)
        if len(worst) > SUN_PATH_MAX:
            raise ClusterError(
                f"directory name too long: socket '{worst}' would have {len(worst)} characters, "
                f"{SUN_PATH_MAX} are possible; use something like /tmp/sc1")


def create_tree(layout, spec):
    """Directories (open to all readers), munge key, fake devices, scripts."""
    for part in ("etc", "bin", "dev", "hold", "log", "munge", "pids", "restd", "run", "spool", "state"):
        path = layout.at(part)
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        os.chmod(path, 0o755)
    for node in spec.nodes:
        os.mkdir(layout.at("spool", node))
        os.chmod(layout.at("spool", node), 0o755)
    os.chmod(layout.root, 0o755)
    for path, size in ((layout.munge_key, 128), (layout.jwt_key, 32)):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
        with os.fdopen(descriptor, "wb") as key:
            key.write(os.urandom(size))
    # slurmctld listens at what its host's name resolves to.
    with open(layout.at("etc", "hosts"), "w", encoding="ascii") as out:
        out.write("127.0.0.1 localhost\n" + "".join(
            f"{address} {name}\n" for name, address in spec.controllers.values()))
    for node, (_, more, _) in spec.hosts.items():
        with open(layout.at("etc", f"hosts.{node}"), "w", encoding="ascii") as out:
            out.write("127.0.0.1 localhost\n" + more)
    if spec.root:
        # Slurm 24.11 looks for a cgroup to use even where no plugin needs one.
        with open(layout.at("etc", "cgroup.conf"), "w", encoding="ascii") as out:
            out.write("CgroupPlugin=disabled\n")
    # 22.05.8 wants File= to be a character or block device, but follows
    # symbolic links, so no privilege is needed.
    for index in range(spec.gpu_count):
        os.symlink("/dev/null", layout.at("dev", f"nvidia{index}"))
    # Epilog: blocks as long as the test holds the node's fifo.
    write_script(layout.at("bin", "epilog"), f"""#!/bin/sh
fifo={layout.root}/hold/$SLURMD_NODENAME
if [ -p "$fifo" ]; then cat "$fifo" >/dev/null; fi
exit 0
""")
    # Reboot, suspend and resume program: only note the call.
    write_script(layout.at("bin", "note"), f"""#!/bin/sh
echo "$0 $*" >>{layout.root}/log/note.log
exit 0
""")


def write_script(path, text):
    """An executable file."""
    with open(path, "w", encoding="utf-8") as out:
        out.write(text)
    os.chmod(path, 0o755)


def slurm_conf_lines(layout, spec):
    """The key/value part of slurm.conf, as a dict (conf_lines replace)."""
    user = pwd.getpwuid(os.geteuid()).pw_name
    host = os.uname().nodename.split(".")[0]
    lines = {
        "ClusterName": spec.cluster_name,
        "SlurmctldHost": "\nSlurmctldHost=".join(
            f"{name}({address})" for name, address in spec.controllers.values() or [(host, "127.0.0.1")]),
        "SlurmUser": user,
        "SlurmdUser": user,
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={layout.munge_socket}",
        "CredType": "cred/munge",
        "SlurmctldPort": spec.ports["slurmctld"],
        # Clients that do not know the node's own Port= (scontrol show slurmd
        # without SLURMD_NODENAME) look here: the first node answers them.
        "SlurmdPort": spec.ports[f"slurmd.{spec.nodes[0]}"],
        # Listen on the addresses given (127.0.0.1) instead of on all.
        "CommunicationParameters": "NoCtldInAddrAny,NoInAddrAny",
        "StateSaveLocation": layout.at("state"),
        "SlurmdSpoolDir": layout.at("spool", "%n"),
        "SlurmctldPidFile": layout.at("run", "slurmctld.pid"),
        "SlurmdPidFile": layout.at("run", "slurmd.%n.pid"),
        "SlurmctldLogFile": layout.at("log", "slurmctld.log"),
        "SlurmdLogFile": layout.at("log", "slurmd.%n.log"),
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "DefMemPerCPU": 16,
        # linuxproc follows parent/child links; no cgroup needed
        "ProctrackType": "proctrack/linuxproc",
        # It needs no cgroup, and narrows each job's Cpus_allowed_list, as on real sites.
        "TaskPlugin": "task/affinity",
        "JobAcctGatherType": "jobacct_gather/none",
        "AccountingStorageType": "accounting_storage/none",
        "MpiDefault": "none",
        # The default, /bin/mail, is often not installed: an error at each start.
        "MailProg": "/bin/true",
        # With 2 the answer to a ping that is on its way undoes `scontrol update state=down`.
        "ReturnToService": 1,
        "SlurmdTimeout": spec.slurmd_timeout,
        "SlurmctldTimeout": 60,
        "KillWait": 2,
        "JobRequeue": 0,
        "InactiveLimit": 0,
        "SlurmdParameters": "config_overrides",
        "SchedulerParameters": "bf_interval=2",
        "Epilog": layout.at("bin", "epilog"),
        "RebootProgram": layout.at("bin", "note"),
    }
    if spec.gpus:
        lines["GresTypes"] = "gpu"
    if spec.jwt:
        lines.update({"AuthAltTypes": "auth/jwt", "AuthAltParameters": f"jwt_key={layout.jwt_key}"})
    if spec.dynamic:
        lines["MaxNodeCount"] = 16
    if spec.configless:
        lines["SlurmctldParameters"] = "enable_configless"
    if spec.power_save:
        lines.update({
            "SuspendProgram": layout.at("bin", "note"), "ResumeProgram": layout.at("bin", "note"),
            "SuspendTime": 86400, "SuspendTimeout": 3, "ResumeTimeout": 600,
        })
    if spec.invalid.get("how") == "memory":
        del lines["SlurmdParameters"]
    for line in spec.conf_lines:
        key, equals, value = line.partition("=")
        if not equals:
            raise ClusterError(f"conf_lines wants KEY=VALUE, not '{line}'")
        for known in [name for name in lines if name.lower() == key.strip().lower()]:
            del lines[known]
        lines[key.strip()] = value.strip()
    return lines


def write_slurm_conf(layout, spec):
    """Write slurm.conf and gres.conf."""
    host = os.uname().nodename.split(".")[0]
    text = "".join(f"{key}={value}\n" for key, value in slurm_conf_lines(layout, spec).items())
    gres = ""
    for node in spec.nodes:
        spoiled = spec.invalid.get("how") if spec.invalid.get("node") == node else None
        memory = real_memory_mib() * 2 if spoiled == "memory" else spec.memory
        line = f"NodeName={node} Port={spec.ports[f'slurmd.{node}']} CPUs={spec.cpus} RealMemory={memory}"
        # Whose host a dynamic future node becomes is not known before slurmd says so.
        if not any(word.startswith("-F") for word in spec.slurmd_arguments.get(node, [])):
            seen_as = spec.hosts[node][2] if node in spec.hosts else spec.node_hosts.get(node, host)
            line += (f" NodeHostname={seen_as}" if seen_as else "") + " NodeAddr=127.0.0.1"
        if spec.gpus:
            line += f" Gres=gpu:{spec.gpus}"
            present = spec.gpu_count - (1 if spoiled == "gpus" else 0)
            kind = f" Type={spec.gpu_type}" if spec.gpu_type else ""
            for index in range(present):
                gres += f"NodeName={node} Name=gpu{kind} File={layout.at('dev', f'nvidia{index}')}\n"
        if node not in spec.dynamic:
            text += f"{line} {spec.node_line_extra}".rstrip() + "\n"
    members = "ALL" if spec.dynamic else ",".join(spec.nodes)
    text += f"PartitionName=normal Nodes={members} Default=YES MaxTime=INFINITE State=UP\n"
    for path, content in ((layout.conf, text), (layout.gres, gres)):
        temporary = path + ".new"
        with open(temporary, "w", encoding="utf-8") as out:
            out.write(content)
        os.replace(temporary, path)
