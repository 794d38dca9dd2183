#!/usr/bin/env bash
# Uses hone as other projects do: find_package, pkg-config, add_subdirectory; each from C11 and from C++17.
#   run.sh SOURCE BUILD find_package|pkg_config|add_subdirectory|fetch_content
#   run.sh SOURCE BUILD moved: the installed command finds its worker and its plugin where the whole was moved to
set -euo pipefail
source_dir=$1 build_dir=$2 way=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
consumer=$source_dir/tests/install/consumer

# That it builds and is found is asked, not how fast it is: to optimise the kernels would take most of the time.
quickly=(-DHONE_KERNEL_OPTIMISE=-O0 "-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG")

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
    # The packs that docs/packs.md begins with have all their files.
    find "$prefix" -name pack.json -path '*/examples/*' | while read -r pack; do
        HONE_STORE=none "$prefix/bin/hone" pack check "$(dirname "$pack")" >"$work/log" || { cat "$work/log"; exit 1; }
    done
    ;;
moved)
    # Nothing is looked for at the place where it was installed first.
    plugin=$build_dir/libhone_libxsmm.so
    if [ ! -e "$plugin" ]; then
        echo "skipped: libxsmm was not there when hone was built, so that there is no plugin to look for"
        [[ ",${HONE_REQUIRE:-}," == *,all,* ]] && exit 1
        exit 77
    fi
    install_hone
    mv "$prefix" "$work/elsewhere"
    unset HONE_WORKER HONE_FORCE HONE_DENY
    export HONE_STORE=sqlite:$work/store.db HONE_DEVICE_LOCKS=$work HONE_CUDA_DRIVER=/nowhere HONE_OPENCL=/nowhere
    hone=$work/elsewhere/bin/hone
    installed=$(find "$work/elsewhere" -name libhone_libxsmm.so)
    call='matmul(f32[8,8], f32[8,8])'
    answers() { "$hone" explain "$call" --json | grep -q "\"source\":\"store\",\"kernel\":\"libxsmm\"" || { "$hone" explain "$call"; exit 1; }; }
    # A worker that lacks the plugin says nothing of the kernel: with one that has it, it is tried at once.
    mkdir "$work/bare"
    cp "$(find "$work/elsewhere" -name hone-worker)" "$work/bare/"
    if HONE_WORKER=$work/bare/hone-worker "$hone" tune "$call" --kernel libxsmm --seconds 1 2>"$work/log"; then
        echo "a worker without the plugin ran it"; exit 1
    fi
    grep -q 'libxsmm: libhone_libxsmm.so is not' "$work/log" || { cat "$work/log"; exit 1; }
    "$hone" tune "$call" --kernel libxsmm --seconds 1
    answers
    # So does a program that is linked with the moved library.
    PKG_CONFIG_PATH=$(dirname "$(find "$work/elsewhere" -name hone.pc)")
    export PKG_CONFIG_PATH
    read -ra flags <<<"$(pkg-config --cflags --libs hone)"
    cc -std=c11 "$consumer/tune.c" -o "$work/tune" "${flags[@]}" -Wl,-rpath,"$(pkg-config --variable=libdir hone)"
    test "$("$work/tune" "$call" libxsmm)" = libxsmm
    answers
    # While it is away a run takes another kernel, and leaves what is stored.
    mv "$installed" "$work/away.so"
    "$hone" run "$call" | tee "$work/log"
    grep -q libxsmm "$work/log" && exit 1
    mv "$work/away.so" "$installed"
    answers
    "$hone" run "$call" | grep 'native/libxsmm'
    # As in a wheel: the library, the worker and the plugin in one folder.
    cmake --install "$build_dir" --prefix "$work/wheel" --component python >"$work/log" || { cat "$work/log"; exit 1; }
    test ! -e "$work/wheel/hone/hone-worker" || test -e "$work/wheel/hone/libhone_libxsmm.so"
    ;;
fetch_content)
    # That the commit comes over is shown by one module of it; the consumer is then built of the tree itself, which the compiler's
    # cache knows from add_subdirectory, and FetchContent makes available in the same way.
    if ! commit=$(git -C "$source_dir" rev-parse HEAD 2>/dev/null); then
        echo "skipped: $source_dir is no clone of a repository"
        [[ ",${HONE_REQUIRE:-}," == *,all,* ]] && exit 1
        exit 77
    fi
    cmake -S "$consumer" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DHONE_GIT=file://$source_dir" "-DHONE_COMMIT=$commit" \
        >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    cmake --build "$work/build" --target hone_base >"$work/log" || { cat "$work/log"; exit 1; }
    # Of a part of another project neither tests nor install rules nor the Python package are made.
    if grep -E '^build _deps/hone-build/(tests|bench|examples|python)/' "$work/build/build.ninja"; then
        echo "a project that fetched hone builds more than hone"; exit 1
    fi
    rm -rf "$work/build"
    build_consumer "-DHONE_GIT=file://$source_dir" "-DHONE_COMMIT=$commit" "-DFETCHCONTENT_SOURCE_DIR_HONE=$source_dir" "${quickly[@]}"
    ;;
add_subdirectory)
    build_consumer -DHONE_SOURCE="$source_dir" "${quickly[@]}"
    ;;
*)
    echo "run.sh: unknown way '$way'" >&2
    exit 2
    ;;
esac
[[ $way == moved ]] || echo "$way: consumed from C11 and C++17"
