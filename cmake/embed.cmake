# hone_embed(OUT.c SYMBOL FILE): a C file with the bytes of FILE as `const char SYMBOL[]`, ended by a NUL.
function(hone_embed out symbol file)
    set(script ${PROJECT_SOURCE_DIR}/cmake/embed_file.cmake)
    add_custom_command(
        OUTPUT ${out}
        COMMAND ${CMAKE_COMMAND} -DFILE=${file} -DOUT=${out} -DSYMBOL=${symbol} -P ${script}
        DEPENDS ${file} ${script}
        VERBATIM)
endfunction()
