# hone_kernel(list...): what a folder of src/kernels is made of. Its kernel.cmake is this one call; nothing outside the
# folder names it. Paths are relative to the folder.
#
#   LEAN                  gcc's -O2 is enough, which makes its kernels smaller than -O3 does
#   TABLES name...        the tables of its table.c: `const hone_kernel_table hone_NAME_table`, registered in every runtime
#   SOURCES file...       C, compiled as the rest of the library is
#   PORTABLE file...      C, compiled with the flags of an instruction set: AVX2, AVX512, AVX512_BF16, AVX512_VNNI, AMX_BF16 and
#                         AMX_INT8 likewise
#   EACH_SET file...      C over `vec` (vector/*.h), compiled once for each of SETS. A function there that others call is named
#                         VEC_NAME(hone_thing), which is hone_thing_avx2 for the set avx2.
#   SETS set...           portable avx2 avx512 avx512_bf16 avx512_vnni amx_bf16 amx_int8; portable_f64 avx2_f64 avx512_f64,
#                         whose `vec` has doubles; default: the first three
#   EMBED file...         put into the library as `const char hone_source_FOLDER_FILE_EXTENSION[]`
#   CUDA list...          the same, each behind the headers of common that the list has in front of it
#   OPENCL file           the same as `hone_source_FOLDER_opencl`, behind common/element.cl
#
# From all of them the build makes kernels/tables.h and kernels/sources.h, and a C file for each set and EACH_SET.

# The flags of the instruction sets. Optimised in every build: a test of an unoptimised kernel would take minutes, and
# intrinsics want their constants folded. -O0 is for who asks for a compiler's warnings alone.
set(HONE_KERNEL_OPTIMISE -O3 CACHE STRING "How far kernels are optimised")
mark_as_advanced(HONE_KERNEL_OPTIMISE)
set(optimise ${HONE_KERNEL_OPTIMISE})
if(HONE_SANITIZE)
    # The checks of every access in these unrolled loops would take the compiler minutes; AddressSanitizer sees the
    # accesses all the same. What is said of loops that are not unrolled here is no error.
    set(optimise -O1 -Wno-error -fno-sanitize=object-size,null,alignment,pointer-overflow,bounds)
endif()
# Where a local variable of an unrolled loop lies is of no use to a debugger, and to find out takes gcc 40 % of its time; to note that
# there are such variables takes 20 % of what is left. Functions and lines stay.
if(CMAKE_C_COMPILER_ID STREQUAL GNU)
    list(APPEND optimise -fno-var-tracking)
endif()
string(TOUPPER "CMAKE_C_FLAGS_${CMAKE_BUILD_TYPE}" flags_of_build)
if("${CMAKE_C_FLAGS} ${${flags_of_build}}" MATCHES "(^| )-g( |$)")
    list(APPEND optimise -g1)
endif()
set(flags_of_portable ${optimise})
# A processor of x86-64 without AVX2 is rare, and gcc's -O2 is within 3 % of -O3 there (10 % for flash_attention): 0.5 MB less.
if(optimise MATCHES "^-O3" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
    list(APPEND flags_of_portable -O2)
endif()
# What LEAN adds. Loops of constant length are unrolled whole as -O3 does, since arrays of vectors are registers only then. On a Zen 5
# attention takes .97 of its time with -O3, silu_mul as long. Of other folders -O3 is worth 1 to 2 % (matmul, flash_attention) up to
# 8 % (scaled_matmul's avx512_decode) and 18 % (reduction).
set(lean)
if(optimise MATCHES "^-O3" AND CMAKE_C_COMPILER_ID STREQUAL GNU)
    set(lean -O2 -fpeel-loops)
endif()
set(flags_of_avx2 ${optimise} -mavx2 -mfma -mf16c)
set(flags_of_avx512 ${optimise} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx2 -mfma -mf16c -mprefer-vector-width=512)
foreach(set portable avx2 avx512)
    set(flags_of_${set}_f64 ${flags_of_${set}})
endforeach()
set(flags_of_avx512_bf16 ${flags_of_avx512} -mavx512bf16)
set(flags_of_avx512_vnni ${flags_of_avx512} -mavx512vnni)
# A compiler without AMX compiles what stands in for it.
include(CheckCCompilerFlag)
check_c_compiler_flag("-mamx-tile -mamx-bf16 -mamx-int8" HONE_COMPILER_HAS_AMX)
set(flags_of_amx_bf16 ${flags_of_avx512_bf16})
set(flags_of_amx_int8 ${flags_of_avx512_vnni})
if(HONE_COMPILER_HAS_AMX)
    list(APPEND flags_of_amx_bf16 -mamx-tile -mamx-bf16)
    list(APPEND flags_of_amx_int8 -mamx-tile -mamx-int8)
endif()

# The vectors of a set: vector/NAME.h.
set(vectors_of_portable portable)
set(vectors_of_avx2 avx2)
set(vectors_of_avx512 avx512)
set(vectors_of_avx512_bf16 avx512)
set(vectors_of_avx512_vnni avx512)
set(vectors_of_amx_bf16 avx512)
set(vectors_of_amx_int8 avx512)
set(vectors_of_portable_f64 f64)
set(vectors_of_avx2_f64 f64)
set(vectors_of_avx512_f64 f64)

set(sets portable avx2 avx512 avx512_bf16 avx512_vnni amx_bf16 amx_int8 portable_f64 avx2_f64 avx512_f64)
# What the folders add to.
set(kernel_sources)
set(kernel_tables)
set(kernel_embedded)

function(hone_kernel_fail folder problem)
    message(FATAL_ERROR "src/kernels/${folder}/kernel.cmake: ${problem}; src/kernels/folders.cmake says what a list has")
endfunction()

# The file that compiles FILES for a set.
function(hone_kernel_each_set folder set files out_file)
    set(out ${CMAKE_CURRENT_BINARY_DIR}/${folder}/${set}.c)
    set(text "// Made by the build from src/kernels/${folder}/kernel.cmake.\n")
    string(APPEND text "#define VEC_NAME(name) name##_${set}\n#include \"kernels/vector/${vectors_of_${set}}.h\"\n")
    foreach(file IN LISTS files)
        string(APPEND text "#include \"kernels/${folder}/${file}\"\n")
    endforeach()
    file(GENERATE OUTPUT ${out} CONTENT "${text}")
    set(${out_file} ${out} PARENT_SCOPE)
endfunction()

function(hone_kernel_embed symbol out_file)
    set(made ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.c)
    hone_embed(${made} ${symbol} ${ARGN})
    set(${out_file} ${made} PARENT_SCOPE)
endfunction()

macro(hone_kernel)
    hone_kernel_of(${folder} ${ARGN})
endmacro()

function(hone_kernel_of folder)
    string(TOUPPER "${sets}" own_flags)
    cmake_parse_arguments(ARG "LEAN" "OPENCL" "TABLES;SOURCES;EACH_SET;SETS;EMBED;CUDA;${own_flags}" ${ARGN})
    if(ARG_UNPARSED_ARGUMENTS)
        hone_kernel_fail(${folder} "expected a keyword before \"${ARG_UNPARSED_ARGUMENTS}\"")
    endif()
    if(ARG_KEYWORDS_MISSING_VALUES)
        hone_kernel_fail(${folder} "${ARG_KEYWORDS_MISSING_VALUES} needs at least one value")
    endif()
    foreach(table IN LISTS ARG_TABLES)
        if(NOT table MATCHES "^[a-z][a-z0-9_]*$")
            hone_kernel_fail(${folder} "expected a keyword or the name of a table (a-z, 0-9, _), got \"${table}\"")
        endif()
    endforeach()
    foreach(file IN LISTS ARG_EACH_SET)
        if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/${file})
            hone_kernel_fail(${folder} "the file ${file} does not exist")
        endif()
    endforeach()
    set(sources ${ARG_SOURCES})
    list(TRANSFORM sources PREPEND ${folder}/)
    foreach(set IN LISTS sets)
        string(TOUPPER ${set} keyword)
        set(compiled ${ARG_${keyword}})
        list(TRANSFORM compiled PREPEND ${folder}/)
        list(APPEND sources ${compiled})
        list(APPEND files_of_${set} ${compiled})
    endforeach()
    if(ARG_EACH_SET AND NOT ARG_SETS)
        set(ARG_SETS portable avx2 avx512)
    endif()
    foreach(set IN LISTS ARG_SETS)
        if(NOT set IN_LIST sets)
            hone_kernel_fail(${folder} "unknown set \"${set}\"; expected portable, avx2, avx512, avx512_bf16, avx512_vnni, amx_bf16, amx_int8, portable_f64, avx2_f64 or avx512_f64")
        endif()
        hone_kernel_each_set(${folder} ${set} "${ARG_EACH_SET}" made)
        list(APPEND sources ${made})
        list(APPEND files_of_${set} ${made})
    endforeach()
    foreach(set IN LISTS sets)
        set(flags ${flags_of_${set}})
        if(ARG_LEAN AND NOT set MATCHES "^portable")
            list(APPEND flags ${lean})
        endif()
        set_source_files_properties(${files_of_${set}} PROPERTIES COMPILE_OPTIONS "${flags}")
    endforeach()
    foreach(file IN LISTS ARG_EMBED)
        string(REGEX REPLACE "[/.]" "_" symbol hone_source_${folder}_${file})
        hone_kernel_embed(${symbol} made ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/${file})
        list(APPEND sources ${made})
        list(APPEND kernel_embedded ${symbol})
    endforeach()
    set(headers)
    foreach(file IN LISTS ARG_CUDA)
        if(file MATCHES "\\.cuh$")
            list(APPEND headers ${CMAKE_CURRENT_SOURCE_DIR}/common/${file})
        else()
            string(REGEX REPLACE "[/.]" "_" symbol hone_source_${folder}_${file})
            hone_kernel_embed(${symbol} made ${headers} ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/${file})
            list(APPEND sources ${made})
            list(APPEND kernel_embedded ${symbol})
            set(headers)
        endif()
    endforeach()
    if(ARG_OPENCL)
        set(symbol hone_source_${folder}_opencl)
        hone_kernel_embed(${symbol} made
            ${CMAKE_CURRENT_SOURCE_DIR}/common/element.cl ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/${ARG_OPENCL})
        list(APPEND sources ${made})
        list(APPEND kernel_embedded ${symbol})
    endif()
    set(kernel_sources ${kernel_sources} ${sources} PARENT_SCOPE)
    set(kernel_tables ${kernel_tables} ${ARG_TABLES} PARENT_SCOPE)
    set(kernel_embedded ${kernel_embedded} PARENT_SCOPE)
endfunction()

# kernels/tables.h and kernels/sources.h, in the folder that includes begin at.
function(hone_kernel_headers folder)
    set(text "// Made by the build from the folders of src/kernels: the tables of the built-in algorithms.\n")
    string(APPEND text "#ifndef HONE_KERNELS_TABLES_H\n#define HONE_KERNELS_TABLES_H\n\n#include \"kernels/kernels.h\"\n\n")
    set(all "")
    foreach(table IN LISTS kernel_tables)
        string(APPEND text "extern const hone_kernel_table hone_${table}_table;\n")
        string(APPEND all " &hone_${table}_table,")
    endforeach()
    string(APPEND text "\n#define HONE_KERNEL_TABLES${all}\n\n#endif\n")
    file(GENERATE OUTPUT ${folder}/kernels/tables.h CONTENT "${text}")
    set(text "// Made by the build from the folders of src/kernels: the sources that devices compile.\n")
    string(APPEND text "#ifndef HONE_KERNELS_SOURCES_H\n#define HONE_KERNELS_SOURCES_H\n\n")
    foreach(symbol IN LISTS kernel_embedded)
        string(APPEND text "extern const char ${symbol}[];\n")
    endforeach()
    string(APPEND text "\n#endif\n")
    file(GENERATE OUTPUT ${folder}/kernels/sources.h CONTENT "${text}")
endfunction()
