#!/usr/bin/env bash
# Cross-builds the static agent for aarch64 into target/aarch64-unknown-linux-gnu/release, for `make agent-aarch64`.
# If this machine's toolchain has the standard library for aarch64 and a cross compiler, the script uses this toolchain.
# Otherwise the script needs root, and uses Debian's toolchain in a root file system of Debian unstable. debootstrap
# creates this file system once, in target/aarch64-root.
set -euo pipefail
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu
packages=(rustc cargo libstd-rust-dev:arm64 gcc-aarch64-linux-gnu libc6-dev-arm64-cross linux-libc-dev-arm64-cross
  build-essential clang llvm autoconf automake autopoint flex bison gawk m4 pkg-config)
build=(env CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
  CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc AR_aarch64_unknown_linux_gnu=aarch64-linux-gnu-ar
  cargo build --release --locked --quiet -p narrows-agent --bin narrows-agent --target "$target")

if command -v aarch64-linux-gnu-gcc >/dev/null; then
  CARGO_ENCODED_RUSTFLAGS=$(packaging/rustflags.sh -Ctarget-feature=+crt-static)
  export CARGO_ENCODED_RUSTFLAGS
  if [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || rustup --quiet target add "$target" 2>/dev/null; then
    exec "${build[@]}" --target-dir target
  fi
fi

if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
  echo "the agent for aarch64 needs gcc-aarch64-linux-gnu and Rust's target $target, or root and debootstrap" >&2
  exit 2
fi
root=$PWD/target/aarch64-root
if [ ! -e "$root/ready" ]; then
  rm -rf --one-file-system "$root"
  debootstrap --variant=minbase --include=ca-certificates sid "$root" >"$root.log" 2>&1 || { tail -3 "$root.log"; exit 1; }
  cp /etc/resolv.conf "$root/etc/"
  chroot "$root" dpkg --add-architecture arm64
  # A mirror may be weeks old, so its expiry date is not checked. apt still checks the mirror's signature.
  chroot "$root" apt-get -o Acquire::Check-Valid-Until=false update -qq
  DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get install -y -qq --no-install-recommends "${packages[@]}" >>"$root.log" 2>&1
  touch "$root/ready"
fi
# Copy this machine's certificates, because cargo may reach registries only through a proxy with its own certificate.
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
# The kernel removes the mounts when the last process in this mount namespace ends.
mkdir -p "$root/source" "$root/cargo"
export root build_line="${build[*]@Q}"
unshare --mount --propagation private bash -euc '
  mount --bind . "$root/source"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  chroot "$root" bash -euc "cd /source; export HOME=/root CARGO_HOME=/cargo
    CARGO_ENCODED_RUSTFLAGS=\$(packaging/rustflags.sh -Ctarget-feature=+crt-static)
    export CARGO_ENCODED_RUSTFLAGS; $build_line --target-dir /cargo/target
    # Run strip inside the root file system, because this machine may have no strip for aarch64 (see
    # packaging/agent-wheel/build.py).
    aarch64-linux-gnu-strip /cargo/target/'"$target"'/release/narrows-agent"'
install -D -m 755 "$root/cargo/target/$target/release/narrows-agent" "target/$target/release/narrows-agent"
