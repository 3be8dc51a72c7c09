"""The documents that the packages install: complete, readable as they are, and their links lead somewhere."""
import re

import pytest

PACKAGES = ("slurmlet", "slurmlet-operator")


def documents(unpacked, package):
    return unpacked[package] / "usr/share/doc" / package


def links(text):
    """Targets of Markdown's links, without code."""
    text = re.sub(r"(?s)```.*?```|`[^`]*`", "", text)
    return re.findall(r"\]\(\s*([^)\s]+)\s*\)", text) + re.findall(r"(?m)^\[[^\]]+\]:\s*(\S+)", text)


def anchors(text):
    """Of its headings, as GitHub and GitLab make them."""
    headings = re.findall(r"(?m)^#+ +(.+?)\s*$", re.sub(r"(?s)```.*?```", "", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("package", PACKAGES)
def test_links_lead_to_what_is_installed(unpacked, package):
    root = documents(unpacked, package)
    dead = []
    for page in root.rglob("*.md"):
        for link in links(page.read_text()):
            path, _, anchor = link.partition("#")
            if re.match(r"https?://", link):
                continue
            target = (page.parent / path).resolve() if path else page
            if not target.is_relative_to(root.resolve()) and target != page or not target.exists():
                dead.append(f"{page.relative_to(root)}: {link}")
            elif anchor and anchor not in anchors(target.read_text()):
                dead.append(f"{page.relative_to(root)}: {link}, no such heading")
    assert dead == []


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_is_compressed_and_pictures_are_small(unpacked, package):
    root = documents(unpacked, package)
    assert {"README.md", "docs/tutorials/first-node.md", "docs/how-to/operator.md", "deploy/README.md",
            "deploy/rbac/kustomization.yaml", "packaging/cloud-init/user-data.yaml"} <= {str(path.relative_to(root)) for path in root.rglob("*")}
    assert [path for path in root.rglob("*") if path.suffix == ".png"
            or path.suffix == ".svg" and (path.parent.name != "images" or path.stat().st_size > 24 << 10)
            or path.suffix == ".gz" and path.name != "changelog.Debian.gz"] == []


def test_each_has_the_manifests_of_its_side(unpacked):
    node, operator = (documents(unpacked, package) / "deploy" for package in PACKAGES)
    for part in ("operator/kustomization.yaml", "charts/slurmlet/values.schema.json", "grafana/slurmlet.json",
                 "rbac/kustomization.yaml", "admission/kustomization.yaml"):
        assert (operator / part).exists(), part
    assert not [part for part in ("operator", "charts", "grafana") if (node / part).exists()]
