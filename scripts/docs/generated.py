"""Files that a program makes."""
import sys

from markdown import ROOT


def write(files):
    """Writes those of {path: text} that differ. With --check it only names them, and exits with 1 if there is one."""
    stale = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        name = path.relative_to(ROOT)
        if "--check" in sys.argv:
            print(f"{name} is not current: {sys.argv[0]} writes it")
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(files[path])
            print(f"{name}: written")
    sys.exit(bool(stale) and "--check" in sys.argv)
