#!/usr/bin/env bash
# Makes a release twice, in two clones with other times and another umask: the bytes are the same, and the archive configures.
#   release.sh SOURCE
set -euo pipefail
source_dir=$1
if ! git -C "$source_dir" rev-parse HEAD >/dev/null 2>&1; then
    echo "skipped: $source_dir is no clone of a repository"
    [[ ",${HONE_REQUIRE:-}," == *,all,* ]] && exit 1
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for mask in 022 077; do
    (umask $mask && git clone -q "file://$source_dir" "$work/$mask")
    # What is not committed yet is to be tested, too.
    cp "$source_dir/scripts/release" "$work/$mask/scripts/release"
    cp "$source_dir/python/backend.py" "$work/$mask/python/backend.py"
    "$work/$mask/scripts/release" --candidate "$work/$mask-out"
done
diff -r "$work/022-out" "$work/077-out"
(cd "$work/022-out" && sha256sum --check --quiet SHA256SUMS)
version=$(sed -nE 's/^project\(hone VERSION ([0-9.]+).*/\1/p' "$source_dir/CMakeLists.txt")
python3 - "$work/022-out/hone-$version.cdx.json" "$version" <<'END'
import json, os, subprocess, sys
bill = json.load(open(sys.argv[1]))
assert bill["bomFormat"] == "CycloneDX" and bill["metadata"]["component"]["version"] == sys.argv[2]
assert {"jansson", "sqlite", "nettle", "libunistring", "zlib"} <= {part["name"] for part in bill["components"]}
codename = os.popen('. /etc/os-release; echo "$VERSION_CODENAME"').read().strip()
for part in bill["components"]:
    assert part["version"] and part["purl"].startswith("pkg:deb/debian/"), part
    # Debian's own updates of a version are no other library.
    package = part["purl"].removeprefix("pkg:deb/debian/").split("@")[0]
    asked = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
    if codename == "bookworm" and asked.returncode == 0:
        assert asked.stdout.rpartition("-")[0] == part["version"].rpartition("-")[0], (part, asked.stdout)
END
# A tree with changes is no release.
if "$work/022/scripts/release" "$work/refused" 2>"$work/log" || ! grep -q '^release: ' "$work/log" || [ -e "$work/refused" ]; then
    cat "$work/log"; exit 1
fi
tar -C "$work" -xf "$work/022-out/hone-$version.tar.gz"
cmake -S "$work/hone-$version" -B "$work/build" -G Ninja -DHONE_TESTS=OFF -DHONE_BENCH=OFF >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
