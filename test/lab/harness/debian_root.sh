# Root file systems of Debian's packages, for tests. Sourced by the scripts that make one each:
#
#   debian_root_begin OUT SUITE VARIANT PACKAGE...   OUT.new has the packages; exits 0 when OUT was made
#                                                    by the calling script as it is now
#   debian_root_end OUT                              OUT.new becomes OUT
#
# VARIANT is mmdebstrap's: extract, essential, apt. The packages come from where apt here gets Debian's
# from; DEBIAN_MIRROR=URL names another place, DEBIAN_ROOT_ARCH another architecture (VARIANT extract). Needs root and
# mmdebstrap.

die() { echo "$(basename "$0"): $*" >&2; exit 1; }

# What OUT is made of: the calling script and this file.
_debian_root_stamp() { cat "$0" "${BASH_SOURCE[0]}" | sha256sum | cut -d' ' -f1; }

# Only what apt has lists of is known to be a mirror of Debian.
_debian_mirror() {
  apt-get indextargets --format '$(ORIGIN) $(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
    awk '$1 == "Debian" && $2 !~ /-(security|updates|backports|proposed-updates)$/ { print $3; exit }'
}

debian_root_begin() {
  local out=$1 suite=$2 variant=$3 mirror options line include
  shift 3
  [ "$(cat "$out.stamp" 2>/dev/null)" = "$(_debian_root_stamp)" ] && [ -d "$out" ] && exit 0
  [ "$(id -u)" = 0 ] || die "needs root"
  command -v mmdebstrap >/dev/null ||
    die "mmdebstrap is missing; on Debian: apt-get install mmdebstrap"

  mirror=${DEBIAN_MIRROR:-$(_debian_mirror)}
  if [ -z "$mirror" ]; then
    apt-get update -qq
    mirror=$(_debian_mirror)
  fi
  [ -n "$mirror" ] || die "apt here knows no mirror of Debian, so $(basename "$out") ($suite) cannot be
made; set DEBIAN_MIRROR to the URL of one"

  # Proxies and the like are a matter of this machine, not of the new root.
  options=(${DEBIAN_ROOT_ARCH:+"--architectures=$DEBIAN_ROOT_ARCH"})
  while IFS= read -r line; do options+=("--aptopt=$line"); done < <(
    apt-config dump 2>/dev/null | grep -E '^Acquire::(Check-|https?::[^ ]*(Proxy|Ca|Verify)|[^ ]*Retries)' || true)

  rm -rf --one-file-system "$out.new" "$out.stamp"
  mkdir -p "$(dirname "$out")"
  include=$(IFS=,; echo "$*")
  if ! mmdebstrap --quiet --mode=root --variant="$variant" --include="$include" \
    --aptopt='APT::Install-Recommends "false"' "${options[@]}" "$suite" "$out.new" "$mirror" \
    >"$out.log" 2>&1; then
    tail -5 "$out.log" >&2
    die "the packages of $suite could not be had from $mirror (whole output: $out.log)"
  fi
}

debian_root_end() {
  local out=$1
  rm -rf --one-file-system "$out"
  mv "$out.new" "$out"
  _debian_root_stamp >"$out.stamp"
  echo "made $out ($(du -sm "$out" | cut -f1) MB, $SECONDS s)"
}
