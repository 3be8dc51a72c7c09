"""Runs a command beside a FUSE file system that says root owns everything, as user UID may mount one
where /etc/fuse.conf has user_allow_other: invented_owners.py DIRECTORY UID TEXT COMMAND…

Needs a mount namespace of its own (unshare -m). DIRECTORY/slurm.conf has TEXT."""
import functools
import pathlib
import subprocess
import sys
import threading

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from harness import fuse  # noqa: E402

FILE = 2  # node id


def attributes(node, text):
    return fuse.attributes(node, *((0o40755, 0) if node == fuse.ROOT else (0o100644, len(text))))


def answer(text, operation, node, body):
    if operation == fuse.LOOKUP:
        return (fuse.entry(FILE, attributes(FILE, text)) if body == b"slurm.conf\0" else fuse.ENOENT)
    if operation == fuse.GETATTR:
        return fuse.attr_out(attributes(node, text))
    if operation == fuse.OPEN:
        return fuse.OPENED
    if operation == fuse.READ:
        return text[fuse.read_range(body)[0]:]
    return b"" if operation in (fuse.RELEASE, fuse.FLUSH) else fuse.ENOSYS


def main():
    directory, uid, text, *command = sys.argv[1:]
    device = fuse.mount(directory, int(uid))
    respond = functools.partial(answer, text.encode())
    threading.Thread(target=fuse.serve, args=(device, respond), daemon=True).start()
    sys.exit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main()
