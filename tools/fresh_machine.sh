#!/usr/bin/env bash
# Runs the README's two commands on a machine that has nothing: a minimal Debian with Rust, Python and a C compiler.
#
#   sudo tools/fresh_machine.sh [--user] [--commit REF] [--only TARGET] [SUITE] [FOLDER]
#
# SUITE   Debian release: bookworm, trixie (default: bookworm)
# FOLDER  New folder for the root file system and the logs (default: a temporary one, removed at the end)
# --user  Run the commands as an ordinary user, with python3-venv installed beforehand
# --commit REF  Clone this commit of the checkout (default: HEAD)
# --only TARGET  Run only `make demo` or `make test` (default: both)
#
# Variables NARROWS_* are passed on. NARROWS_REQUIRE_KERNEL=1 makes the tests fail where they would skip.
# The new root has its own mounts, processes and caches, so it sees no bpffs, no guest and no package of this
# machine. It shares the kernel, the network, the CPU and the Rust toolchain with this machine. Exit code 0:
# the commands passed.
set -euo pipefail

user=root commit=HEAD targets=(demo test)
while [[ ${1:-} == --* ]]; do
  case $1 in
    --user) user=narrows; shift ;;
    --commit) commit=$2; shift 2 ;;
    --only) targets=("$2"); shift 2 ;;
    *) echo "found option $1, expected --user, --commit or --only" >&2; exit 2 ;;
  esac
done
suite=${1:-bookworm} folder=${2:-}
checkout=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
toolchain=$(rustc --print sysroot)

[[ $(id -u) == 0 ]] || { echo "fresh_machine.sh needs root, for namespaces and chroot" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "found no debootstrap; as root: apt-get install debootstrap" >&2; exit 2; }
if [[ -z $folder ]]; then
  folder=$(mktemp -d); trap 'rm -rf --one-file-system "$folder"' EXIT
elif [[ -e $folder ]]; then
  echo "found $folder, expected the name of a new folder" >&2; exit 2
fi
root=$folder/root home=/home/narrows
mkdir -p "$folder"

echo "debootstrap $suite ..."
packages=ca-certificates,gcc,git,libc6-dev,make,python3
[[ $user == root ]] || packages+=,python3-venv
debootstrap --variant=minbase --include="$packages" "$suite" "$root" >"$folder/debootstrap.log" 2>&1 || {
  tail -n 5 "$folder/debootstrap.log"; exit 1; }

# Copy the host's certificates and name servers, because the host may reach registries through a proxy.
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
chroot "$root" useradd --create-home narrows
git clone --quiet --no-local "$checkout" "$root$home/project"
git -C "$root$home/project" checkout --quiet --detach "$(git -C "$checkout" rev-parse "$commit")"
chroot "$root" chown -R "$user" "$home"
mkdir -p "$root/opt/rust"

# Keep the settings of registries and certificates. Drop everything that names a folder of this machine.
mapfile -t settings < <(env | grep -E '^[A-Za-z_]*(NARROWS_[A-Z_]*|proxy|PROXY|_CA[_A-Z]*|SSL_[A-Z_]*|_CERT|CERT_FILE|INDEX_URL)=' || true)

inside() { # runs a command in the root, in its own namespaces
  unshare --mount --pid --fork --kill-child bash -euc '
    root=$1; shift
    mount --make-rprivate /
    mount --bind "$root" "$root"
    mount --bind -o ro "$1" "$root/opt/rust"; shift
    mount -t proc proc "$root/proc"
    mount -t sysfs sysfs "$root/sys"
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup" || true
    mount --rbind /dev "$root/dev"
    for place in run tmp; do mount -t tmpfs tmpfs "$root/$place"; done
    # pivot_root instead of chroot: in a chroot, a process with its own mounts would find its program under a
    # path of the host.
    mkdir -p "$root/host"
    cd "$root"
    pivot_root . host
    umount -l /host
    rmdir /host
    exec "$@"
  ' inside "$root" "$toolchain" "$@"
}

failed=0
for target in "${targets[@]}"; do
  started=$SECONDS log=$folder/$target.log
  if inside /usr/bin/env -i "${settings[@]}" HOME="$home" LANG=C.UTF-8 \
      PATH=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      setpriv --reuid "$user" --regid "$user" --init-groups \
      bash -c "cd $home/project && make $target" >"$log" 2>&1 </dev/null; then
    echo "$suite, $user: make $target passed in $((SECONDS - started)) s"
    grep -E '^make test leaves out' "$log" || true
  else
    failed=1
    echo "$suite, $user: make $target FAILED after $((SECONDS - started)) s; the end of its output:"
    tail -n 40 "$log" | sed 's/^/    /'
  fi
done
exit "$failed"
