# A module is a folder of src/: a static library that links only the modules it may use. The modules' objects
# make the shared and the static library of hone.

set(HONE_WARNINGS
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes)
if(HONE_WERROR)
    list(APPEND HONE_WARNINGS -Werror)
endif()

# How C of hone is compiled: hone_public_options over the public headers alone, hone_options with those of src/, too.
add_library(hone_public_options INTERFACE)
target_compile_features(hone_public_options INTERFACE c_std_11)
target_compile_options(hone_public_options INTERFACE ${HONE_WARNINGS} -fvisibility=hidden -fno-math-errno)
target_compile_definitions(hone_public_options INTERFACE _GNU_SOURCE)
target_include_directories(hone_public_options INTERFACE ${PROJECT_SOURCE_DIR}/include)
if(HONE_SANITIZE)
    # -g1: a report names functions and lines, and no variables.
    target_compile_options(hone_public_options INTERFACE -fsanitize=${HONE_SANITIZE} -fno-omit-frame-pointer -g1)
    target_link_options(hone_public_options INTERFACE -fsanitize=${HONE_SANITIZE})
endif()
add_library(hone_options INTERFACE)
target_link_libraries(hone_options INTERFACE hone_public_options)
target_include_directories(hone_options INTERFACE ${PROJECT_SOURCE_DIR}/src)

# hone_run_path(TARGET [FOLDER]): where the loader looks for what an installed file is linked with; without FOLDER, where the
# system says. The build tree has the same: CMake would make room for a later edit with colons, and an empty entry is the
# current folder.
function(hone_run_path target)
    set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
    if(ARGC GREATER 1)
        set_target_properties(${target} PROPERTIES INSTALL_RPATH "${ARGV1}")
    endif()
endfunction()

set_property(GLOBAL PROPERTY HONE_MODULES "")

# hone_module(NAME [COLD] [FOLDERS folder...] SOURCES file... USES module-or-library...). FOLDERS: the order of its sub-folders, each of
# which uses only those before it, as scripts/layers.py checks; `.` is the module's own files. COLD: no call of a kernel comes through it, and it
# does no long work: a release makes it small rather than fast.
function(hone_module name)
    cmake_parse_arguments(ARG "COLD" "" "FOLDERS;SOURCES;USES" ${ARGN})
    add_library(hone_${name} STATIC ${ARG_SOURCES})
    set_target_properties(hone_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON C_STANDARD 11 C_EXTENSIONS OFF)
    target_link_libraries(hone_${name} PUBLIC hone_options ${ARG_USES})
    # As the preset release, also where CMake's -O3 is the default, which makes modules a tenth larger. Kernels have flags of their own.
    if(ARG_COLD)
        target_compile_options(hone_${name} PRIVATE $<$<CONFIG:Release>:-Os>)
    else()
        target_compile_options(hone_${name} PRIVATE $<$<CONFIG:Release>:-O2>)
    endif()
    set_property(GLOBAL APPEND PROPERTY HONE_MODULES hone_${name})
endfunction()
