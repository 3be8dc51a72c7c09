#!/usr/bin/env bash
# Gets what the portable build is made of, once: the compiler from PyPI, each library as Debian's source
# package. Called by build.sh.
#
#   fetch.sh INTO [--update]
#
# sources.lock names version and SHA-256 of each. A source package that Debian no longer has (a security
# update took its place) is replaced by the newest one, and that is said; apt has verified it, too.
# --update writes the newest ones to sources.lock.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../test/lab/harness/debian_root.sh"

into=$(realpath -m -- "$1")
update=${2:-}
lock=$here/sources.lock
suite=bookworm
mkdir -p "$into/lists/partial" "$into/archives/partial"

# Of Debian's source packages alone, whatever this machine's apt has.
apt_here() {
  local command=$1
  shift
  "$command" -o "Dir::Etc::SourceList=$into/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o "Dir::State::Lists=$into/lists" -o "Dir::Cache=$into/archives" "$@"
}

locked() { awk -v name="$1" '$1 == name { print $2, $3 }' "$lock"; }

# Whether INTO has what sources.lock names.
has() {
  [ -z "$update" ] && [ -d "$into/$1" ] &&
    [ "$(cat "$into/$1.version" 2>/dev/null)" = "$(locked "$1" | cut -d' ' -f1)" ]
}

fetch_compiler() {
  local version sum wheel
  read -r version sum < <(locked ziglang) || true
  rm -rf "$into/wheel" "$into/ziglang"
  python3 -m pip download -q --no-deps --only-binary :all: -d "$into/wheel" "ziglang==$version"
  wheel=$(echo "$into"/wheel/*.whl)
  [ -n "$update" ] || sha256sum --quiet -c - <<<"$sum  $wheel" || die "$wheel is not what sources.lock says"
  python3 -m zipfile -e "$wheel" "$into/unpacked"
  mv "$into/unpacked/ziglang" "$into/ziglang"
  chmod +x "$into/ziglang/zig"
  echo "ziglang $version $(sha256sum "$wheel" | cut -d' ' -f1)" >>"$into/found"
  rm -rf "$into/wheel" "$into/unpacked"
  echo "$version" >"$into/ziglang.version"
}

# NAME: into INTO/NAME, Debian's patches applied. The locked version, else the newest that can be had: a mirror may
# be behind its own index.
fetch_source() {
  local name=$1 version sum offered candidate dsc
  read -r version sum < <(locked "$name") || true
  offered=$(apt_here apt-cache showsrc --only-source "$name" | sed -n 's/^Version: //p' | sort -Vru)
  [ -n "$update" ] || offered=$(printf '%s\n' "$version" "$offered")
  for candidate in $offered; do
    rm -rf "$into/$name" "$into/download"
    mkdir "$into/download"
    (cd "$into/download" && apt_here apt-get source -qq --download-only --only-source "$name=$candidate" \
      >"$into/apt.log" 2>&1) && break
    echo "$name $candidate cannot be had" >&2
    rm -rf "$into/download"
  done
  [ -d "$into/download" ] || { cat "$into/apt.log" >&2; die "no source package of $name"; }
  dsc=$(echo "$into"/download/*.dsc)
  if [ "$candidate" = "$version" ] && [ -z "$update" ]; then
    sha256sum --quiet -c - <<<"$sum  $dsc" || die "$dsc is not what sources.lock says"
  elif [ -z "$update" ]; then
    echo "$name: $candidate in place of $version; ./dev portable --update locks it" >&2
  fi
  dpkg-source --no-check -x "$dsc" "$into/$name" >/dev/null
  echo "$name $candidate $(sha256sum "$dsc" | cut -d' ' -f1)" >>"$into/found"
  rm -rf "$into/download"
  rm -f "$into"/*.orig.tar*
  echo "$candidate" >"$into/$name.version"
}

SOURCES=(openssl curl libyaml fmtlib spdlog nlohmann-json3 cpp-httplib)

mirror=${DEBIAN_MIRROR:-$(_debian_mirror)}
security=$(apt-get indextargets --format '$(ORIGIN) $(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
  awk '$1 == "Debian" && $2 ~ /-security$/ { print $3; exit }')
[ -n "$mirror" ] || die "apt here knows no mirror of Debian; set DEBIAN_MIRROR to the URL of one"
{
  echo "deb-src $mirror $suite main"
  [ -z "$security" ] || echo "deb-src $security $suite-security main"
} >"$into/sources.list"
: >"$into/found"
has ziglang || fetch_compiler
missing=()
for name in "${SOURCES[@]}"; do has "$name" || missing+=("$name"); done
[ ${#missing[@]} = 0 ] || apt_here apt-get update -qq
for name in "${missing[@]}"; do fetch_source "$name"; done
if [ -n "$update" ]; then
  { sed -n '/^#/p' "$lock"; sort "$into/found"; } >"$lock.new"
  mv "$lock.new" "$lock"
fi
