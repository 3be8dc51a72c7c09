"""Another time of day for a program: libfaketime (Debian package libfaketime). The kernel's time
namespaces move the monotonic clocks only, and not the one that is wrong on real machines."""
import contextlib
import os
import pathlib

LIBRARIES = sorted(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))


def available():
    return bool(LIBRARIES)


def prefix():
    """Words before those that change the user: what libfaketime keeps in /dev/shm by process number is
    nobody else's, and ends with the program."""
    return ["unshare", "--mount", "sh", "-c",
            'mount -t tmpfs -o mode=1777 shm /dev/shm && exec "$@"', "sh"]


def inside(file):
    """Words right before the program whose clock is that of `file`, read at every look. Not in the
    environment of the one that changes the user: the library would leave root's files."""
    return ["env", f"LD_PRELOAD={LIBRARIES[0]}", f"FAKETIME_TIMESTAMP_FILE={file}",
            "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"]


def step(file, seconds):
    new = pathlib.Path(f"{file}.new")
    new.write_text(f"{seconds:+d}\n")
    new.chmod(0o644)
    new.replace(file)


@contextlib.contextmanager
def aged(seconds=86400):
    """Programs that are started meanwhile live in the past."""
    if not available():
        yield
        return
    own = {"LD_PRELOAD": str(LIBRARIES[0]), "FAKETIME": f"-{seconds}"}
    before = {key: os.environ.get(key) for key in own}
    os.environ.update(own)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value
