# What `cmake --install` puts where: the shared library, its headers, the command, the worker, and the files that
# find_package and pkg-config read.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hone)

install(TARGETS hone_shared EXPORT hone-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS hone-command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS hone-worker RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/hone)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/hone DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/docs/man/hone.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${PROJECT_SOURCE_DIR}/completions/hone.bash
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME hone)
install(FILES ${PROJECT_SOURCE_DIR}/completions/_hone DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${PROJECT_SOURCE_DIR}/completions/hone.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT hone-targets NAMESPACE hone:: DESTINATION ${cmake_dir})

configure_package_config_file(
    ${PROJECT_SOURCE_DIR}/cmake/hone-config.cmake.in ${PROJECT_BINARY_DIR}/hone-config.cmake
    INSTALL_DESTINATION ${cmake_dir})
write_basic_package_version_file(
    ${PROJECT_BINARY_DIR}/hone-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hone-config.cmake ${PROJECT_BINARY_DIR}/hone-config-version.cmake
    DESTINATION ${cmake_dir})

# From where the file lies: what is installed, or moved, elsewhere is found there.
file(RELATIVE_PATH pc_up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_prefix "\${pcfiledir}/${pc_up}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/hone.pc.in ${PROJECT_BINARY_DIR}/hone.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/hone.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
