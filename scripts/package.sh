#!/usr/bin/env bash
# Builds the packages from the committed tree; called by ./dev package. See docs/contributors/building.md.
#
#   package.sh [deb] [rpm] [--nocheck] [--prebuilt PROGRAM] [--portable ARCH] [--into DIR] [--work DIR]
#
# Without deb or rpm: both. --nocheck leaves the unit tests out. --prebuilt (DEB only) takes a program
# that is built already, for tests that have no time to compile it again. With changes that are not committed,
# the tree as it is becomes the package and its release says "dirty". --portable takes the programs of
# build/portable/build-ARCH (packaging/portable/build.sh); ARCH: amd64, arm64.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

die() { echo "package.sh: $*" >&2; exit 1; }
say() { printf '%3d:%02d  %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*" >&2; }

# steps NAME LOG: writes what comes in to LOG, and says which step of dpkg-buildpackage or rpmbuild begins.
steps() {
  local line step='' last=''
  while IFS= read -r line; do
    printf '%s\n' "$line"
    case $line in
      *dh_auto_configure*) step=configure ;;
      *dh_auto_build*) step=compile ;;
      'Executing(%build)'*) step='configure, compile' ;;
      *dh_auto_test* | 'Executing(%check)'*) step='unit tests' ;;
      *dh_auto_install* | 'Executing(%install)'*) step=install ;;
      *dh_builddeb* | 'Processing files:'*) step=pack ;;
    esac
    [ "$step" = "$last" ] || say "$1: $step"
    last=$step
  done >"$2"
}

kinds=()
check=yes
prebuilt=
portable=
into=build/packages
work=build/package
while [ $# -gt 0 ]; do
  case $1 in
    deb | rpm) kinds+=("$1") ;;
    --nocheck) check=no ;;
    --prebuilt) prebuilt=$(realpath "$2"); check=no; shift ;;
    --portable) portable=$2; check=no; shift ;;
    --into) into=$2; shift ;;
    --work) work=$2; shift ;;
    *) die "unknown argument \"$1\"; see the top of this script" ;;
  esac
  shift
done
[ ${#kinds[@]} -gt 0 ] || kinds=(deb rpm)
mkdir -p "$into" "$work"
into=$(realpath "$into")
work=$(realpath "$work")

version=$(sed -n 's/^project(slurmlet VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=slurmlet-$version
tarball=$work/$name.tar.gz
dirty=
[ -z "$(git status --porcelain)" ] || dirty=yes
# Every time inside a package is the commit's.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8 TZ=UTC

# Objects do not depend on where they were compiled (see packaging/debian/rules): the second package
# finds the first one's, a later build those of a former.
export CCACHE_BASEDIR=$work/$name CCACHE_NOHASHDIR=1

# The tree as a tarball whose bytes depend on nothing but the files.
make_tarball() {
  if [ -z "$dirty" ]; then
    git archive --format=tar --prefix="$name/" HEAD
  else
    git ls-files -z --cached --others --exclude-standard |
      while IFS= read -r -d '' file; do if [ -e "$file" ]; then printf '%s\0' "$file"; fi; done |
      tar -c --null --files-from=- --transform="s,^,$name/," --sort=name --owner=0 --group=0 \
        --numeric-owner --mode=u+rw,go=rX --mtime="@$SOURCE_DATE_EPOCH"
  fi | gzip -9n >"$tarball"
}

unpack() {
  rm -rf "${work:?}/$name"
  tar -xf "$tarball" -C "$work"
}

build_deb() {
  local options="parallel=${JOBS:-$(nproc)}" here=$work/$name
  [ "$check" = yes ] || options+=" nocheck"
  [ -z "$prebuilt" ] || export SLURMLET_PREBUILT=$prebuilt
  [ -z "$portable" ] || export SLURMLET_PORTABLE=$PWD/build/portable/build-$portable
  unpack
  cp -r "$here/packaging/debian" "$here/debian"
  if [ -n "$dirty" ]; then sed -i '1s/)/+dirty)/' "$here/debian/changelog"; fi
  # dpkg-buildpackage writes beside the source.
  rm -f "$work"/slurmlet*_*
  (cd "$here" && DEB_BUILD_OPTIONS=$options dpkg-buildpackage -us -uc -b ${portable:+-d "-a$portable"} 2>&1) |
    steps DEB "$work/deb.log" ||
    { tail -40 "$work/deb.log" >&2; die "no DEB; whole output: $work/deb.log"; }
  rm -f "$into"/slurmlet*_* "$into"/debug/*.deb
  [ -n "$prebuilt$portable" ] || mv "$work"/slurmlet*-dbgsym_*.deb "$into/debug"
  mv "$work"/slurmlet_*.{deb,buildinfo,changes} "$work"/slurmlet-operator_*.deb "$into"
}

build_rpm() {
  local top=$work/rpm options=() spec=$work/rpm/SPECS/slurmlet.spec
  [ "$check" = yes ] || options+=(--without check)
  case $portable in
    amd64) options+=(--target x86_64) ;;
    arm64) options+=(--target aarch64) ;;
  esac
  [ -z "$portable" ] || options+=(--define "portable $PWD/build/portable/build-$portable")
  if ! rpm --eval '%{?_unitdir}' | grep -q .; then
    # --target reads the macros again, and forgets what --load added.
    options+=(--nodeps "--macros=/usr/lib/rpm/macros:/usr/lib/rpm/macros.d/macros.*:/usr/lib/rpm/platform/%{_target}/macros:\
/usr/lib/rpm/fileattrs/*.attr:$PWD/packaging/rpm/macros.debian")
  fi
  rm -rf "$top" "${work:?}/$name"
  mkdir -p "$top"/{SOURCES,SPECS,RPMS}
  cp "$tarball" systemd/slurmlet.sysusers "$top/SOURCES"
  cp packaging/rpm/slurmlet.spec "$spec"
  if [ -n "$dirty" ]; then
    sed -i 's/^\(Release: *[0-9]*\)/\1.dirty/; /^%changelog/,/^-/s/^\(\* .* - .*\)/\1.dirty/' "$spec"
  fi
  rpmbuild "${options[@]}" --define "_topdir $top" --define "_builddir $work" \
    --define "_smp_build_ncpus ${JOBS:-$(nproc)}" --noclean -bb "$spec" 2>&1 |
    steps RPM "$work/rpm.log" ||
    { tail -40 "$work/rpm.log" >&2; die "no RPM; whole output: $work/rpm.log"; }
  rm -f "$into"/*.rpm "$into"/debug/*.rpm
  [ -n "$portable" ] || mv "$top"/RPMS/*/slurmlet-debug*.rpm "$into/debug"
  mv "$top"/RPMS/*/slurmlet-*.rpm "$into"
}

mkdir -p "$into/debug"
make_tarball
for kind in "${kinds[@]}"; do "build_$kind"; done
find "$into" -type f \( -name '*.deb' -o -name '*.rpm' \) | sort
