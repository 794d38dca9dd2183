# The libraries that hone is built on. Required ones stop the configuration with the Debian package to install.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

function(hone_require target pkg package)
    pkg_check_modules(${target} IMPORTED_TARGET GLOBAL ${pkg})
    if(NOT ${target}_FOUND)
        message(FATAL_ERROR "hone needs ${pkg}: install ${package} (Debian) or run scripts/setup")
    endif()
endfunction()

hone_require(JANSSON jansson libjansson-dev)
hone_require(XXHASH libxxhash libxxhash-dev)
hone_require(NETTLE nettle nettle-dev)
hone_require(SQLITE sqlite3 libsqlite3-dev)
hone_require(ZLIB zlib zlib1g-dev)

# libunistring and cpu_features ship no .pc file.
find_path(UNISTRING_INCLUDE unistr.h)
find_library(UNISTRING_LIBRARY unistring)
if(NOT UNISTRING_INCLUDE OR NOT UNISTRING_LIBRARY)
    message(FATAL_ERROR "hone needs libunistring: install libunistring-dev (Debian) or run scripts/setup")
endif()
add_library(hone_unistring INTERFACE IMPORTED GLOBAL)
target_include_directories(hone_unistring INTERFACE ${UNISTRING_INCLUDE})
target_link_libraries(hone_unistring INTERFACE ${UNISTRING_LIBRARY})

find_package(CpuFeatures QUIET)
if(NOT TARGET CpuFeatures::cpu_features)
    message(FATAL_ERROR "hone needs cpu_features: install libcpu-features-dev (Debian) or run scripts/setup")
endif()
