#!/usr/bin/env bash
# Builds the Debian package of narrows-agent from the binary that `make agent` has built. The first argument is the
# folder for the package (default: dist).
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$(realpath -m "${1:-dist}")
target=$(rustc -vV | sed -n 's/^host: //p')

cargo_deb=$(command -v cargo-deb || echo target/tools/bin/cargo-deb)
if [ ! -x "$cargo_deb" ]; then
  # A debug build of cargo-deb takes half the time, and the speed of cargo-deb does not matter. Without default
  # features, cargo-deb needs the program xz instead of liblzma.
  cargo install cargo-deb --version '^3' --locked --quiet --debug --no-default-features --root target/tools
fi
# `make agent` builds in a separate folder, so that it can run at the same time as other builds.
export CARGO_TARGET_DIR=$PWD/target/agent
rm -rf target/agent-docs
"$CARGO_TARGET_DIR/$target/release/narrows-agent" generate target/agent-docs
mkdir -p "$out"
"$cargo_deb" --no-build --strip --locked --quiet -p narrows-agent --target "$target" --output "$out/" "${@:2}"
