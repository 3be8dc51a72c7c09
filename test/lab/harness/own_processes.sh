#!/bin/sh
# Runs a program that sees no processes but those it starts, and which end with it: root's slurmd of
# another test run would look like its own to a daemon without privileges. Without root each sees whose
# slurmd is whose, and the program just runs.
[ "$(id -u)" = 0 ] || exec "$@"
# The shell is process 1 there and takes in whoever has lost its parent.
exec unshare --pid --fork --kill-child --mount-proc /bin/sh -c '"$@"; exit $?' sh "$@"
