# A module is a folder of src/: a static library that links only the modules it may use. The modules' objects
# make the shared and the static library of hone.

set(HONE_WARNINGS
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes)
if(HONE_WERROR)
    list(APPEND HONE_WARNINGS -Werror)
endif()

add_library(hone_options INTERFACE)
target_compile_features(hone_options INTERFACE c_std_11)
target_compile_options(hone_options INTERFACE ${HONE_WARNINGS} -fvisibility=hidden -fno-math-errno)
target_compile_definitions(hone_options INTERFACE _GNU_SOURCE)
target_include_directories(hone_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
if(HONE_SANITIZE)
    target_compile_options(hone_options INTERFACE -fsanitize=${HONE_SANITIZE} -fno-omit-frame-pointer -g)
    target_link_options(hone_options INTERFACE -fsanitize=${HONE_SANITIZE})
endif()

set_property(GLOBAL PROPERTY HONE_MODULES "")

# hone_module(NAME SOURCES file... USES module-or-library...)
function(hone_module name)
    cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
    add_library(hone_${name} STATIC ${ARG_SOURCES})
    set_target_properties(hone_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON C_STANDARD 11 C_EXTENSIONS OFF)
    target_link_libraries(hone_${name} PUBLIC hone_options ${ARG_USES})
    set_property(GLOBAL APPEND PROPERTY HONE_MODULES hone_${name})
endfunction()
