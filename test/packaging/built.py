"""Packages as scripts/package.sh builds them."""
import pathlib
import subprocess

from roots import REPOSITORY

SCRIPT = REPOSITORY / "scripts/package.sh"


def build(kind, into, work):
    """Builds one package, "deb" or "rpm", without its unit tests; returns the directory with it."""
    done = subprocess.run([str(SCRIPT), kind, "--nocheck", "--into", str(into), "--work", str(work)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return into


def only(directory, pattern):
    """The one file of that name."""
    found = list(pathlib.Path(directory).glob(pattern))
    assert len(found) == 1, (pattern, found)
    return found[0]
