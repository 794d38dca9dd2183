# Run by cpack over each package's files before they are packed: what Debian's policy asks for, and `cmake --install` does not do.
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC) # SOURCE_DATE_EPOCH where it is set
set(changelog "hone (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n\
  * Release ${CPACK_PACKAGE_VERSION}: what changes for users is in CHANGELOG.md of the sources.\n\n\
 -- ${CPACK_DEBIAN_PACKAGE_MAINTAINER}  ${now}\n")

function(run)
    execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

foreach(package IN LISTS CPACK_COMPONENTS_ALL)
    set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${package}/usr)
    set(doc ${root}/share/doc/${package})
    file(MAKE_DIRECTORY ${doc})
    file(WRITE ${doc}/changelog.Debian "${changelog}")
    file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/debian_copyright ${doc}/copyright)
    file(GLOB compressed ${doc}/changelog.Debian ${root}/share/man/man1/*.1)
    run(gzip -9nf ${compressed})
    file(GLOB_RECURSE archives ${root}/lib/*.a)
    foreach(archive IN LISTS archives)
        run(strip --strip-debug --enable-deterministic-archives ${archive})
    endforeach()
    # The loader finds libhone where the system keeps libraries.
    file(GLOB_RECURSE libraries ${root}/*.so ${root}/*.so.*)
    foreach(library IN LISTS libraries)
        if(NOT IS_SYMLINK ${library})
            file(RPATH_REMOVE FILE ${library})
        endif()
    endforeach()
    # Where Debian's zsh looks.
    if(EXISTS ${root}/share/zsh/site-functions)
        file(RENAME ${root}/share/zsh/site-functions ${root}/share/zsh/vendor-completions)
    endif()
    # Documentation of a package stands in the folder of its name.
    if(NOT package STREQUAL hone AND EXISTS ${root}/share/doc/hone)
        file(GLOB files ${root}/share/doc/hone/*)
        file(COPY ${files} DESTINATION ${doc})
        file(REMOVE_RECURSE ${root}/share/doc/hone)
    endif()
endforeach()
