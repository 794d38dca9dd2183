# hone_embed(OUT.c SYMBOL FILE...): a C file with the bytes of the files as `const char SYMBOL[]`, ended by a NUL.
function(hone_embed out symbol)
    set(script ${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake)
    string(REPLACE ";" "|" files "${ARGN}")
    add_custom_command(
        OUTPUT ${out}
        COMMAND ${CMAKE_COMMAND} "-DFILES=${files}" -DOUT=${out} -DSYMBOL=${symbol} -P ${script}
        DEPENDS ${ARGN} ${script}
        VERBATIM)
endfunction()
