# What `cmake --install` puts where, and to which package each file belongs: the libraries, the headers, the command, the
# worker, and the files that find_package and pkg-config read. Component of a file: the Debian package of HonePackages.cmake.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hone)

install(TARGETS hone_shared EXPORT hone-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libhone0 NAMELINK_COMPONENT libhone-dev
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libhone-dev
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES $<TARGET_FILE:hone_static> DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libhone-dev RENAME libhone.a)
install(TARGETS hone_xla hone_ffi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libhone0)
if(TARGET hone_libxsmm)
    install(TARGETS hone_libxsmm LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hone COMPONENT hone-kernels-libxsmm)
endif()
install(TARGETS hone-command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT hone)
install(TARGETS hone-worker RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/hone COMPONENT hone)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/hone DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libhone-dev
    FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES ${PROJECT_SOURCE_DIR}/docs/man/hone.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT hone)
install(FILES ${PROJECT_SOURCE_DIR}/completions/hone.bash
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT hone RENAME hone)
install(FILES ${PROJECT_SOURCE_DIR}/completions/_hone
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT hone)
install(FILES ${PROJECT_SOURCE_DIR}/completions/hone.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT hone)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT license)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT hone
    FILES_MATCHING PATTERN "*.md")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT libhone-dev
    FILES_MATCHING PATTERN "*.c" PATTERN "*.h" PATTERN "*.cpp" PATTERN "*.rs" PATTERN "pack.json" PATTERN "*.cl" PATTERN "*.mlir")
install(EXPORT hone-targets NAMESPACE hone:: DESTINATION ${cmake_dir} COMPONENT libhone-dev)

configure_package_config_file(
    ${PROJECT_SOURCE_DIR}/cmake/hone-config.cmake.in ${PROJECT_BINARY_DIR}/hone-config.cmake
    INSTALL_DESTINATION ${cmake_dir})
write_basic_package_version_file(
    ${PROJECT_BINARY_DIR}/hone-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hone-config.cmake ${PROJECT_BINARY_DIR}/hone-config-version.cmake
    DESTINATION ${cmake_dir} COMPONENT libhone-dev)

# From where the file lies: what is installed, or moved, elsewhere is found there.
file(RELATIVE_PATH pc_up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_prefix "\${pcfiledir}/${pc_up}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/hone.pc.in ${PROJECT_BINARY_DIR}/hone.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hone.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libhone-dev)
