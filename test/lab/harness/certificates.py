"""Authorities and certificates of their own for tests, made with the openssl program."""
import pathlib
import subprocess


def openssl(*arguments):
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def _new_key(path):
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path)
    path.chmod(0o600)


class Authority:
    """A certificate authority: `crt` is its certificate. One that exists (crt and key) or a new
    self-signed one."""

    def __init__(self, directory, name="ca", existing=None):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        if existing:
            self.crt, self.key = existing
            return
        self.crt, self.key = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        _new_key(self.key)
        openssl("req", "-x509", "-new", "-key", self.key, "-subj", f"/CN={name}", "-days", 2,
                "-out", self.crt)

    def issue(self, name, common_name, organizations=(), names=(), days=1):
        """(certificate file, key file). `names` ("DNS:…", "IP:…") make it a server's."""
        crt, key = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        request, extensions = self.directory / f"{name}.csr", self.directory / f"{name}.ext"
        _new_key(key)
        subject = "".join(f"/O={one}" for one in organizations) + f"/CN={common_name}"
        openssl("req", "-new", "-key", key, "-subj", subject, "-out", request)
        lines = ["basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature",
                 "extendedKeyUsage=" + ("serverAuth" if names else "clientAuth")]
        if names:
            lines.append("subjectAltName=" + ",".join(names))
        extensions.write_text("\n".join(lines) + "\n")
        openssl("x509", "-req", "-in", request, "-CA", self.crt, "-CAkey", self.key,
                "-set_serial", int.from_bytes(name.encode(), "big") % 2**63 + 1,
                "-days", days, "-extfile", extensions, "-out", crt)
        return crt, key


def cluster_authority(plane, directory):
    """The control plane's own authority, to issue what it did not."""
    pki = plane.directory / "pki"
    return Authority(directory, existing=(pki / "ca.crt", pki / "ca.key"))
