#!/usr/bin/env bash
# The DEBs and manifests of release 0.1.0, for test_machine_upgrades.py: from its commit, which a clone without history
# lacks (then there is nothing, and that test is skipped).
#
#   release_before.sh [OUT]      OUT defaults to <repository>/build/release-0.1.0: *.deb, deploy/
#
# Does nothing where OUT was made already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
COMMIT=a452323f47f1dd08d2fe5991f040491fb605680c

out=$(realpath -m -- "${1:-build/release-0.1.0}")
[ ! -e "$out" ] || exit 0
git cat-file -e "$COMMIT^{commit}" 2>/dev/null || exit 0
rm -rf "$out.new"
git clone --quiet --shared --no-checkout . "$out.new/tree"
git -C "$out.new/tree" checkout --quiet "$COMMIT"
"$out.new/tree/scripts/package.sh" deb --nocheck --into "$out.new" --work "$out.new/work" >"$out.log" 2>&1 ||
  { tail -40 "$out.log" >&2; exit 1; }
mv "$out.new/tree/deploy" "$out.new/deploy"
rm -rf "$out.new"/{tree,work,debug}
mv "$out.new" "$out"
