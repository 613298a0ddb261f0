#!/bin/sh
# Prints the value of CARGO_ENCODED_RUSTFLAGS: the given flags, and flags that keep paths of the build machine out of an
# artifact. In this variable the byte 0x1f separates flags, because a path may contain spaces.
set -eu
cd "$(dirname "$0")/.."
printf -- '--remap-path-prefix=%s=narrows\037--remap-path-prefix=%s=cargo' "$(pwd -P)" "${CARGO_HOME:-$HOME/.cargo}"
[ $# = 0 ] || printf '\037%s' "$@"
