#!/usr/bin/env bash
# Packs a built hone for Debian, has lintian read the packages, installs them in a clean root, uses them there and removes them.
#   debian.sh SOURCE BUILD
# The root is build-debian/root.tar, which `scripts/setup debian` makes: Debian, what the packages depend on, and nothing else.
set -euo pipefail
source_dir=$1 build_dir=$2
base=$source_dir/build-debian/root.tar

skip() {
    echo "skipped: $1"
    [[ ",${HONE_REQUIRE:-}," == *,all,* ]] && exit 1
    exit 77
}
[ "$(id -u)" -eq 0 ] || skip "only root may enter another root"
command -v lintian >/dev/null && [ -e "$base" ] || skip "lintian or $base is missing: scripts/setup debian brings both"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'echo "debian.sh: line $LINENO failed"' ERR
root=$work/root
call='matmul(f32[8,8], f32[8,8])'
# Commands find themselves by /proc, which is there as long as they run.
inside() {
    # shellcheck disable=SC2016  # of the inner shell
    unshare --mount sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" \
        /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HONE_STORE=sqlite:/tmp/store.db HONE_CUDA_DRIVER=/nowhere "$@"
}

(cd "$build_dir" && cpack -G DEB -B "$work/packed" >"$work/log" 2>&1) || { cat "$work/log"; exit 1; }
packages=("$work"/packed/*.deb)
names=$(for package in "${packages[@]}"; do dpkg-deb -f "$package" Package; done)
echo "$names" | sort | tr '\n' ' '
[[ $names == *libhone0* && $names == *libhone-dev* && $names == *python3-hone* ]]
lintian --allow-root --fail-on error "${packages[@]}"

mkdir "$root"
tar -C "$root" -xf "$base"
before=$(cd "$root" && find usr etc opt -path usr/share/doc -prune -o -print | sort)
mkdir "$root/packed"
cp "${packages[@]}" "$root/packed"
inside sh -c 'dpkg -i packed/*.deb' >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
for file in bin/hone libexec/hone/hone-worker lib/libhone.a lib/libhone.so share/doc/hone/tune.md share/man/man1/hone.1.gz \
    share/bash-completion/completions/hone share/zsh/vendor-completions/_hone share/fish/vendor_completions.d/hone.fish \
    share/doc/libhone-dev/examples/call.c; do
    test -e "$root/usr/$file" || { echo "/usr/$file is missing"; exit 1; }
done

# Compiled with this machine's compiler and the packages' files, against the shared library and the static one.
export PKG_CONFIG_PATH=$root/usr/lib/pkgconfig
read -ra flags <<<"$(pkg-config --cflags --libs hone)"
cc -std=c11 "$source_dir/tests/install/consumer/tune.c" -o "$root/tmp/shared" "${flags[@]}"
read -ra flags <<<"$(pkg-config --static --cflags --libs hone | sed 's/-lhone/-l:libhone.a/')"
cc -std=c11 "$source_dir/tests/install/consumer/tune.c" -o "$root/usr/bin/hone-static" "${flags[@]}"
kernel=portable
[[ $names != *libxsmm* ]] || kernel=libxsmm
test "$(inside /tmp/shared "$call" $kernel)" = $kernel
inside hone explain "$call" --json | grep -q "\"source\":\"store\",\"kernel\":\"$kernel\""
test "$(inside hone-static "$call" $kernel)" = $kernel
inside hone tune "$call" --kernel $kernel --seconds 1 | grep "chosen $kernel"
test "$(inside python3 -c "import hone; print(hone.decide('$call').kernel)")" = $kernel
rm "$root/usr/bin/hone-static"

# shellcheck disable=SC2086  # a list
inside dpkg --purge $names >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
left=$(comm -13 <(echo "$before") <(cd "$root" && find usr etc opt -path usr/share/doc -prune -o -print | sort) | grep -v __pycache__ || true)
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
echo "packed, installed, used and removed: $(du -ch "${packages[@]}" | tail -1 | cut -f1)"
