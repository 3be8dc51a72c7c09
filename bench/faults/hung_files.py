"""A FUSE file system with the files of one directory, which root seems to own and which hangs on
demand as a shared file system does whose server is gone: hung_files.py DIRECTORY MOUNTPOINT.

Standard input: "hang" and "go", each answered by a line. Its end is that of the file system."""
import ctypes
import os
import pathlib
import struct
import sys
import threading

LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT = 1, 2, 3, 14, 15, 18, 25, 26
OPENDIR, READDIR, RELEASEDIR, BATCH_FORGET = 27, 28, 29, 42
ENOENT, ENOSYS = 2, 38
MS_NOSUID, MS_NODEV = 2, 4


class Files:
    """inode 1 is the directory, the files follow by name."""

    def __init__(self, directory):
        self.paths = sorted(one for one in pathlib.Path(directory).iterdir() if one.is_file())
        self.numbers = {one.name: number for number, one in enumerate(self.paths, 2)}

    def attributes(self, number):
        if number == 1:
            mode, size = 0o40755, 0
        else:
            found = self.paths[number - 2].stat()
            mode, size = 0o100000 | (found.st_mode & 0o755), found.st_size
        return struct.pack("<6Q10I", number, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def answer(self, operation, number, body):
        """The body of the answer, or an errno (linux/fuse.h, version 7.31). Nothing is cached."""
        if operation == INIT:
            return struct.pack("<4I2H2I2H8I", 7, 31, 65536, 0, 12, 9, 65536, 1, 16, 0, *[0] * 8)
        if operation == LOOKUP:
            found = self.numbers.get(body.rstrip(b"\0").decode())
            return struct.pack("<4Q2I", found, 0, 0, 0, 0, 0) + self.attributes(found) \
                if found else ENOENT
        if operation == GETATTR:
            return struct.pack("<QII", 0, 0, 0) + self.attributes(number)
        if operation in (OPEN, OPENDIR):
            return struct.pack("<QII", 0, 0, 0)
        if operation == READ:
            offset, size = struct.unpack_from("<QI", body, 8)
            return self.paths[number - 2].read_bytes()[offset:offset + size]
        if operation in (RELEASE, FLUSH, RELEASEDIR, READDIR):
            return b""
        return ENOSYS


def serve(device, files, going):
    while True:
        try:
            request = os.read(device, 1 << 18)
        except OSError:
            return  # unmounted
        _, operation, unique, number = struct.unpack_from("<IIQQ", request)
        if operation in (FORGET, BATCH_FORGET):
            continue
        going.wait()
        found = files.answer(operation, number, request[40:])
        errno, body = (found, b"") if isinstance(found, int) else (0, found)
        try:
            os.write(device, struct.pack("<IiQ", 16 + len(body), -errno, unique) + body)
        except FileNotFoundError:
            pass  # who asked was killed


def main():
    source, mountpoint = sys.argv[1:]
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"hung", mountpoint.encode(), b"fuse", MS_NOSUID | MS_NODEV, options.encode()):
        raise OSError(ctypes.get_errno(), "mount")
    going = threading.Event()
    going.set()
    threading.Thread(target=serve, args=(device, Files(source), going), daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        (going.clear if line.strip() == "hang" else going.set)()
        print("done", flush=True)
    libc.umount2(mountpoint.encode(), 2)  # MNT_DETACH; who still waits gets ENOTCONN


if __name__ == "__main__":
    main()
