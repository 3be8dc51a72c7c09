"""Runs the subcommands of slurmlet beside a Rig's daemon."""
import os
import pwd
import subprocess

from .daemon import BINARY
from .rig import GENERAL_WAIT


def command_beside(rig, subcommand, *arguments):
    """The command line and the environment, with the daemon's own flags."""
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith(("SLURM", "KUBE", "APISERVER_", "VKUBELET_"))}
    environment.update({"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin", **rig.environment})
    command = [BINARY, subcommand, *rig.arguments(), *arguments]
    return [str(part) for part in command], environment


def run_beside(rig, subcommand, *arguments, user=None):
    command, environment = command_beside(rig, subcommand, *arguments)
    if user:
        account = pwd.getpwnam(user)
        command = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}",
                   "--clear-groups", "--inh-caps=-all", *command]
    return subprocess.run(command, capture_output=True, text=True, env=environment,
                          timeout=GENERAL_WAIT, check=False)
