#!/usr/bin/env bash
# Uses hone as other projects do: find_package, pkg-config, add_subdirectory; each from C11 and from C++17.
#   run.sh SOURCE BUILD find_package|pkg_config|add_subdirectory
set -euo pipefail
source_dir=$1 build_dir=$2 way=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
consumer=$source_dir/tests/install/consumer

build_consumer() {
    cmake -S "$consumer" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release "$@" >"$work/log" || { cat "$work/log"; exit 1; }
    cmake --build "$work/build" --target consumer_c consumer_cpp >"$work/log" || { cat "$work/log"; exit 1; }
    "$work/build/consumer_c"
    "$work/build/consumer_cpp"
}

install_hone() {
    cmake --install "$build_dir" --prefix "$prefix" >"$work/log" || { cat "$work/log"; exit 1; }
}

case $way in
find_package)
    install_hone
    build_consumer -DCMAKE_PREFIX_PATH="$prefix"
    ;;
pkg_config)
    install_hone
    PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name hone.pc)")
    export PKG_CONFIG_PATH
    read -ra flags <<<"$(pkg-config --cflags --libs hone)"
    libdir=$(pkg-config --variable=libdir hone)
    cc -std=c11 "$consumer/main.c" -o "$work/consumer_c" "${flags[@]}" -Wl,-rpath,"$libdir"
    c++ -std=c++17 "$consumer/main.cpp" -o "$work/consumer_cpp" "${flags[@]}" -Wl,-rpath,"$libdir"
    "$work/consumer_c"
    "$work/consumer_cpp"
    # What was installed works by itself: the command finds its worker.
    HONE_STORE=none "$prefix/bin/hone" devices >/dev/null
    ;;
add_subdirectory)
    # As the release was built, so that ccache knows most of it.
    build_consumer -DHONE_SOURCE="$source_dir" "-DCMAKE_C_FLAGS_RELEASE=-O2 -g -DNDEBUG"
    ;;
*)
    echo "run.sh: unknown way '$way'" >&2
    exit 2
    ;;
esac
echo "$way: consumed from C11 and C++17"
