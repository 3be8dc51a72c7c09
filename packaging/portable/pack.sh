#!/usr/bin/env bash
# What build.sh made of one architecture as a tarball (to be unpacked in /), DEB and RPM, with its SBOM (SPDX).
#
#   pack.sh ARCH      build/portable/slurmlet-VERSION-linux-ARCH.{tar.gz,spdx.json}, slurmlet{,-operator}*.{deb,rpm}
#
# Those of one commit have the same bytes, wherever they were made.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
into=$PWD/build/portable
version=$(sed -n 's/^project(slurmlet VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC

sbom() {
  python3 - "$1" "$version" "$into/sources" "$SOURCE_DATE_EPOCH" <<'PYTHON'
import datetime, json, pathlib, sys
arch, version, sources, epoch = sys.argv[1:]
made = datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
parts = {path.stem: path.read_text().strip() for path in sorted(pathlib.Path(sources).glob("*.version"))}
compiler = parts.pop("ziglang")
name = f"slurmlet-{version}-linux-{arch}"
def package(key, has, **more):
    return {"SPDXID": f"SPDXRef-{key}", "name": key, "versionInfo": has, "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
            "copyrightText": "NOASSERTION", **more}
packages = [package("slurmlet", version, licenseDeclared="Apache-2.0"), package("ziglang", compiler)]
relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-slurmlet"},
             {"spdxElementId": "SPDXRef-ziglang", "relationshipType": "BUILD_TOOL_OF", "relatedSpdxElement": "SPDXRef-slurmlet"}]
for key, has in parts.items():
    purl = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": f"pkg:deb/debian/{key}@{has}?arch=source"}
    packages.append(package(key, has, externalRefs=[purl]))
    relations.append({"spdxElementId": "SPDXRef-slurmlet", "relationshipType": "STATIC_LINK",
                      "relatedSpdxElement": f"SPDXRef-{key}"})
print(json.dumps({"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
                  "documentNamespace": f"https://slurmlet.io/spdx/{name}",
                  "creationInfo": {"created": made, "creators": ["Tool: slurmlet packaging/portable"]},
                  "packages": packages, "relationships": relations}, indent=1))
PYTHON
}

arch=$1
name=slurmlet-$version-linux-$arch
tree=$into/tree-$arch
rm -rf "$tree"
for component in daemon operator; do
  DESTDIR=$tree cmake --install "$into/build-$arch" --component $component >/dev/null
done
cp LICENSE "$tree/usr/share/doc/slurmlet"
# Unpacked over an older one it changes no setting.
mkdir -p "$tree"/usr/share/slurmlet{,-operator}
mv "$tree/etc/slurmlet/config.yaml" "$tree/usr/share/slurmlet"
mv "$tree/etc/slurmlet/operator.yaml" "$tree/usr/share/slurmlet-operator"
sbom "$arch" >"$into/$name.spdx.json"
tar -c -C "$tree" --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX \
  --mtime="@$SOURCE_DATE_EPOCH" usr | gzip -9n >"$into/$name.tar.gz"
rm -rf "$tree"
scripts/package.sh --portable "$arch" --into "$into/packages-$arch" --work "$into/package-$arch" >/dev/null
cp "$into/packages-$arch"/*.deb "$into/packages-$arch"/*.rpm "$into"
