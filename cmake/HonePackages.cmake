# Debian packages of a built tree: `cpack` in the build folder. A package is a component of HoneInstall.cmake;
# debian_files.cmake writes into each what Debian's policy asks for.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hone)
set(CPACK_PACKAGE_VENDOR hone)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL libhone0 libhone-dev hone)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian_files.cmake)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# Who packages says so: cpack -D CPACK_DEBIAN_PACKAGE_MAINTAINER="NAME <ADDRESS>".
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "hone maintainers <maintainers@hone.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # each package has its own
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(same "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")

# hone_package(COMPONENT SECTION DESCRIPTION [FIELD VALUE]...): fields of Debian's control file, as CPack names them
function(hone_package component section summary text)
    string(TOUPPER ${component} upper)
    set(prefix CPACK_DEBIAN_${upper}_PACKAGE)
    set(${prefix}_NAME ${component} PARENT_SCOPE)
    set(${prefix}_SECTION ${section} PARENT_SCOPE)
    set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
    while(ARGN)
        list(POP_FRONT ARGN field value)
        set(${prefix}_${field} "${value}" PARENT_SCOPE)
    endwhile()
endfunction()

set(about "hone keeps every implementation of an operation in one registry,
finds the fastest correct one for each call on this device, and
remembers it.")

# What programs linked with the library depend on, and that the loader's cache is made anew.
set(control ${PROJECT_BINARY_DIR}/debian)
file(WRITE ${control}/shlibs "libhone ${PROJECT_VERSION_MAJOR} libhone0 (>= ${PROJECT_VERSION})\n")
file(WRITE ${control}/triggers "activate-noawait ldconfig\n")
hone_package(libhone0 libs "tuner of kernels - shared library" "${about}
Programs need this library; tuning also needs the package hone."
    RECOMMENDS "hone ${same}")
set(CPACK_DEBIAN_LIBHONE0_PACKAGE_CONTROL_EXTRA ${control}/shlibs ${control}/triggers)
hone_package(libhone-dev libdevel "tuner of kernels - development files" "${about}
The headers, the static library, examples, and the files for CMake
and pkg-config."
    DEPENDS "libhone0 ${same}"
    RECOMMENDS "libcpu-features-dev, libjansson-dev, libsqlite3-dev, libunistring-dev, nettle-dev, zlib1g-dev")
hone_package(hone utils "tuner of kernels - command" "${about}
The command, its documentation, and the worker that candidates run in."
    RECOMMENDS hone-kernels-libxsmm SUGGESTS "libopenblas0-pthread, libdnnl2")
if(TARGET hone_libxsmm)
    list(APPEND CPACK_COMPONENTS_ALL hone-kernels-libxsmm)
    hone_package(hone-kernels-libxsmm libs "tuner of kernels - kernels of libxsmm" "${about}
This package adds libxsmm's small matrix products to the kernels that
compete."
        ENHANCES "hone, libhone0")
endif()
if(TARGET hone_python)
    list(APPEND CPACK_COMPONENTS_ALL python3-hone)
    hone_package(python3-hone python "tuner of kernels - Python package" "${about}
This package is its interface to Python."
        SHLIBDEPS OFF # libhone0, which is not installed where it is packed
        DEPENDS "libhone0 ${same}, libc6 (>= 2.36), python3 (>= 3.11), python3-numpy" RECOMMENDS "hone ${same}")
    # What Python compiles goes with the package.
    file(WRITE ${control}/postinst "#!/bin/sh\nset -e\nif command -v py3compile >/dev/null; then py3compile -p python3-hone; fi\n")
    file(WRITE ${control}/prerm "#!/bin/sh\nset -e\nif command -v py3clean >/dev/null; then py3clean -p python3-hone; fi\n")
    set(CPACK_DEBIAN_PYTHON3-HONE_PACKAGE_CONTROL_EXTRA ${control}/postinst ${control}/prerm)
endif()
include(CPack)
