"""User-data for the machines under test: what packaging/cloud-init has, with this cluster's values."""
import base64
import json
import re

from harness.api import repository
from harness.bootstrap import GROUP, bootstrap_token
from machine import SERVER

_SHIPPED = repository() / "packaging/cloud-init/user-data.yaml"
# What the file says to change, as it stands there.
_SERVER = r"(?m)(?<=server: )https://\S+$"
_AUTHORITY = r"(?m)(?<=certificate-authority-data: )\S+$"
_TOKEN = r"(?m)(?<=token: )\S+$"
# An entry of write_files, as the file shows one in a comment.
_CONFIGURATION = """  - path: /etc/slurmlet/config.d/10-site.yaml
    permissions: '0644'
    content: |
      apiVersion: slurmlet.io/v1alpha1
      kind: SlurmletConfiguration
      logLevel: info
"""


def _replaced(text, old, new):
    changed, count = re.subn(old, lambda _: new, text)
    assert count == 1, f"{_SHIPPED}: {old} is there {count} times"
    return changed


def indented(text, spaces):
    return "".join(" " * spaces + line + "\n" for line in text.splitlines())


def shipped(node):
    """packaging/cloud-init/user-data.yaml with the three values changed that it says to change."""
    token = bootstrap_token(node.plane, node.machine.directory / "token", GROUP).read_text().strip()
    authority = (node.plane.directory / "pki/ca.crt").read_bytes()
    text = _SHIPPED.read_text()
    text = _replaced(text, _SERVER, "https://{}:{}".format(*SERVER))
    text = _replaced(text, _AUTHORITY, base64.b64encode(authority).decode())
    return _replaced(text, _TOKEN, token)


def with_package(node, repository_on_machine):
    """The same with a configuration of the site's, and the package from an APT repository that is a
    directory of the machine."""
    source = f"deb [trusted=yes] file:{repository_on_machine} ./"
    text = _replaced(shipped(node), r"(?m)^write_files:\n", f"write_files:\n{_CONFIGURATION}")
    return text + f"""packages: [slurmlet]
apt:
  sources:
    slurmlet:
      source: "{source}"
"""


def virtual_kubelet(node):
    """What the public bootstrap provider for virtual-kubelet makes of a VirtualKubeletConfig: a jinja
    template with the cluster's administrator, its CA with key, the mock provider's configuration and a
    unit without Restart=. Its download of the program is left out: ours is on the disk."""
    kubeconfig = node.machine.directory / "admin.kubeconfig"
    server = "https://{}:{}".format(*SERVER)
    node.plane.user_kubeconfig("kubernetes-admin", kubeconfig, "--org", "system:masters", "--server",
                               server)
    pki = node.plane.directory / "pki"
    mock = {"{{ ds.meta_data.local_hostname }}": {
        "cpu": "0", "memory": "0Gi", "pods": "0",
        "labels": {"metal3.io/uuid": "{{ ds.meta_data.uuid }}"}}}
    unit = f"""[Unit]
Description=virtual-kubelet
[Service]
Environment=KUBECONFIG=/etc/kubernetes/kubeconfig
Environment=APISERVER_CERT_LOCATION=/etc/kubernetes/pki/ca.crt
Environment=APISERVER_KEY_LOCATION=/etc/kubernetes/pki/ca.key
Environment=KUBERNETES_SERVICE_HOST={SERVER[0]}
Environment=KUBERNETES_SERVICE_PORT={SERVER[1]}
ExecStart=/usr/local/bin/virtual-kubelet --provider mock --nodename "{{{{ ds.meta_data.local_hostname }}}}" \
--provider-config /etc/virtual-kubelet/vkubelet-cfg.json  --kubeconfig /etc/kubernetes/kubeconfig
[Install]
WantedBy=multi-user.target
"""
    files = [("/etc/kubernetes/kubeconfig", "0644", kubeconfig.read_text()),
             ("/etc/kubernetes/pki/ca.crt", "0644", (pki / "ca.crt").read_text()),
             ("/etc/kubernetes/pki/ca.key", "0600", (pki / "ca.key").read_text()),
             ("/etc/virtual-kubelet/vkubelet-cfg.json", "0644", json.dumps(mock, indent=2)),
             ("/lib/systemd/system/virtual-kubelet.service", "0640", unit)]
    text = "## template: jinja\n#cloud-config\n\nwrite_files:\n"
    for path, mode, content in files:
        text += (f"-   path: {path}\n    owner: root:root\n    permissions: '{mode}'\n"
                 f"    content: |\n{indented(content, 6)}")
    return text + """runcmd:
  - "chmod a+x /usr/local/bin/virtual-kubelet"
  - "systemctl enable --now virtual-kubelet"
"""
