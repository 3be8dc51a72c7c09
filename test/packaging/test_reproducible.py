"""The same tree gives the same bytes, wherever it is built."""
import hashlib

import pytest

from built import build


def digests(directory, suffix):
    return {path.relative_to(directory).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in directory.rglob(f"*.{suffix}")}


@pytest.mark.parametrize("kind", ["deb", "rpm"])
def test_the_same_tree_gives_the_same_bytes_at_another_place(packages, scratch, kind):
    again = build(kind, scratch / "again", scratch / "a/longer/path/of/another/depth")
    first, second = digests(packages, kind), digests(again, kind)
    assert len(first) == 2  # with debug information
    assert first == second
