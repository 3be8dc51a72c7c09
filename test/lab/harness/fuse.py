"""The kernel's side of a FUSE file system (linux/fuse.h, version 7.31), for read-only ones that a test
serves itself. Nothing is cached: each access is a request."""
import ctypes
import os
import select
import signal
import struct

LOOKUP, FORGET, GETATTR, READLINK, OPEN, READ, STATFS, RELEASE, FLUSH = 1, 2, 3, 5, 14, 15, 17, 18, 25
INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET = 26, 27, 28, 29, 36, 42
ENOENT, ENOSYS = 2, 38
ROOT = 1  # node id
MS_NOSUID, MS_NODEV = 2, 4
_UNANSWERED = (FORGET, BATCH_FORGET, INTERRUPT)


def mount(directory, uid=0):
    """Mounts as that user; returns the device to serve."""
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id={uid},group_id={uid},allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"test", os.fsencode(directory), b"fuse", MS_NOSUID | MS_NODEV, options.encode()):
        raise OSError(ctypes.get_errno(), "mount")
    return device


def serve(device, answer, control=None):
    """answer(operation, node id, body of the request): the body of the answer, or an errno. A byte in `control` stops
    this process between two requests: who waits for an answer to one that was taken cannot be killed."""
    while True:
        if control is not None and control in select.select([device, control], [], [])[0]:
            os.read(control, 1)
            os.kill(os.getpid(), signal.SIGSTOP)
            continue
        request = os.read(device, 1 << 18)
        _, operation, unique, node = struct.unpack_from("<IIQQ", request)
        if operation in _UNANSWERED:
            continue
        if operation == INIT:
            found = struct.pack("<4I2H2I2H8I", 7, 31, 65536, 0, 12, 9, 65536, 1, 16, 0, *[0] * 8)
        else:
            found = answer(operation, node, request[40:])
        errno, body = (found, b"") if isinstance(found, int) else (0, found)
        os.write(device, struct.pack("<IiQ", 16 + len(body), -errno, unique) + body)


def attributes(node, mode, size, uid=0, gid=0):
    return struct.pack("<6Q10I", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode, 1, uid, gid,
                       0, 4096, 0)


def entry(node, attr):
    """The answer to LOOKUP."""
    return struct.pack("<4Q2I", node, 0, 0, 0, 0, 0) + attr


def statfs_out(found):
    """The answer to STATFS, of os.statvfs()."""
    return struct.pack("<5Q4I24x", found.f_blocks, found.f_bfree, found.f_bavail, found.f_files, found.f_ffree,
                       found.f_bsize, found.f_namemax, found.f_frsize, 0)


def attr_out(attr):
    """The answer to GETATTR."""
    return struct.pack("<QII", 0, 0, 0) + attr


OPENED = struct.pack("<QII", 0, 0, 0)


def read_range(body):
    """(offset, size) of READ and READDIR."""
    return struct.unpack_from("<QI", body, 8)


def dirent(node, offset, name, is_directory):
    text = struct.pack("<QQII", node, offset, len(name), 4 if is_directory else 8) + name
    return text + bytes(-len(text) % 8)
