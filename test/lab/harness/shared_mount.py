"""A directory as a shared file system shows it: with a server that may stop answering, as a process that touches it
sees it when the server of an NFS mount is gone, and go on."""
import contextlib
import os
import pathlib
import signal
import stat
import subprocess
import sys

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from harness import fuse  # noqa: E402


class SharedMount:
    """Shows `source` at `directory`, new or not, read-only, until close(). Needs a mount namespace of its own."""

    def __init__(self, source, directory):
        self.path = pathlib.Path(directory)
        self.path.mkdir(mode=0o755, exist_ok=True)
        self._server = subprocess.Popen([sys.executable, __file__, str(source), str(directory)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self._server.stdout.readline() != b"mounted\n":
            raise RuntimeError(f"cannot mount {directory}")

    def hang(self):
        os.write(self._server.stdin.fileno(), b"h")
        os.waitid(os.P_PID, self._server.pid, os.WSTOPPED)

    def answer(self):
        self._server.send_signal(signal.SIGCONT)

    def close(self):
        self._server.kill()  # what waits for it gets an error
        self._server.wait()
        self._server.stdin.close()
        self._server.stdout.close()
        subprocess.run(["umount", "-l", self.path], check=False)

    @contextlib.contextmanager
    def hanging(self):
        self.hang()
        try:
            yield
        finally:
            self.answer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class _Mirror:
    """Answers from the files below a directory. A node id is an index of `paths`."""

    def __init__(self, source):
        self.paths = [None, source]

    def answer(self, operation, node, body):
        try:
            return self._answer(operation, self.paths[node], node, body)
        except OSError as error:
            return error.errno

    def _answer(self, operation, path, node, body):
        if operation == fuse.LOOKUP:
            child = os.path.join(path, os.fsdecode(body.rstrip(b"\0")))
            attr = self._attributes(child)
            return fuse.entry(self._node(child), attr)
        if operation == fuse.GETATTR:
            return fuse.attr_out(self._attributes(path))
        if operation == fuse.READLINK:
            return os.fsencode(os.readlink(path))
        if operation in (fuse.OPEN, fuse.OPENDIR):
            return fuse.OPENED
        if operation == fuse.READ:
            offset, size = fuse.read_range(body)
            with open(path, "rb") as file:
                file.seek(offset)
                return file.read(size)
        if operation == fuse.READDIR:
            return self._entries(path, *fuse.read_range(body))
        if operation == fuse.STATFS:
            return fuse.statfs_out(os.statvfs(path))
        if operation in (fuse.RELEASE, fuse.RELEASEDIR, fuse.FLUSH):
            return b""
        return fuse.ENOSYS

    def _node(self, path):
        if path not in self.paths:
            self.paths.append(path)
        return self.paths.index(path)

    def _attributes(self, path):
        info = os.lstat(path)
        return fuse.attributes(self._node(path), info.st_mode, info.st_size, info.st_uid, info.st_gid)

    def _entries(self, path, offset, size):
        text = b""
        for index, name in enumerate(sorted(os.listdir(path))[offset:], offset + 1):
            child = os.path.join(path, name)
            is_directory = stat.S_ISDIR(os.lstat(child).st_mode)
            one = fuse.dirent(self._node(child), index, os.fsencode(name), is_directory)
            if len(text) + len(one) > size:
                break
            text += one
        return text


def main():
    source, directory = sys.argv[1:]
    device = fuse.mount(directory)
    print("mounted", flush=True)
    fuse.serve(device, _Mirror(source).answer, sys.stdin.fileno())


if __name__ == "__main__":
    main()
