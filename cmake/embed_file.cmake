# The script of hone_embed.
file(READ ${FILE} bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1, " bytes "${bytes}")
string(REPLACE " \n" "\n    " bytes "${bytes}")
get_filename_component(name ${FILE} NAME)
file(WRITE ${OUT} "// ${name}, embedded by cmake/embed.cmake\nextern const char ${SYMBOL}[];\nconst char ${SYMBOL}[] = {\n    ${bytes}0\n};\n")
