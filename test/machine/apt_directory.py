"""A directory that APT takes for a repository, with one package."""
import hashlib
import shutil

from namespaces import run


def make(directory, package):
    """`directory` is made here; APT knows it as "deb [trusted=yes] file:DIRECTORY ./"."""
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(package, directory / package.name)
    data = package.read_bytes()
    index = run("dpkg-deb", "--field", package).rstrip("\n")
    index += (f"\nFilename: ./{package.name}\nSize: {len(data)}\n"
              f"SHA256: {hashlib.sha256(data).hexdigest()}\n")
    (directory / "Packages").write_text(index)
