// NVRTC, NVIDIA's compiler of CUDA C++ as a library, which is opened for the first source; and a cache on disk of
// compiled code.
#ifndef HONE_PLATFORMS_CUDA_COMPILER_H
#define HONE_PLATFORMS_CUDA_COMPILER_H

#include "base/buffer.h"
#include "base/memory.h"
#include "os/mutex.h"
#include "os/os.h"
#include "platforms/shared/compiled.h"

typedef struct nvrtc_program nvrtc_program;

typedef struct hone_cuda_compiler {
    hone_allocator allocator;
    hone_mutex mutex;      // guards the opening
    hone_library *library; // NULL: not opened
    int version;           // 13000
    char include[512];     // the toolkit's headers; "": not found
    int (*get_version)(int *major, int *minor);
    int (*get_arch_count)(int *count);
    int (*get_archs)(int *archs);
    int (*create)(
        nvrtc_program **program,
        const char *source,
        const char *name,
        int header_count,
        const char *const *headers,
        const char *const *include_names);
    int (*destroy)(nvrtc_program **program);
    int (*compile)(nvrtc_program *program, int option_count, const char *const *options);
    int (*get_log_size)(nvrtc_program *program, size_t *size);
    int (*get_log)(nvrtc_program *program, char *log);
    int (*get_binary_size)(nvrtc_program *program, size_t *size);
    int (*get_binary)(nvrtc_program *program, char *binary);
    int (*get_ptx_size)(nvrtc_program *program, size_t *size);
    int (*get_ptx)(nvrtc_program *program, char *ptx);
    const char *(*get_error_string)(int result);
} hone_cuda_compiler;

void hone_cuda_compiler_init(hone_cuda_compiler *compiler, hone_allocator allocator);
void hone_cuda_compiler_deinit(hone_cuda_compiler *compiler);

// Appends "sources: NVRTC 13.0", or what is missing. Opens the library.
void hone_cuda_compiler_describe(hone_cuda_compiler *compiler, hone_buffer *out);

typedef struct hone_cuda_source {
    const char *text;
    const char *name;   // for messages: "rms_norm.cu"
    const char *macros; // "-DA=1\0-DB=2\0"
    size_t macros_size;
    const char *options; // further ones, with spaces between them; NULL: none
    int capability;      // 90
} hone_cuda_source;

// Compiles to a cubin for the capability, or, if the compiler does not know it, to PTX for the latest known capability
// before it. Code that was compiled before with the same compiler, source and options comes from the folder
// HONE_COMPILE_CACHE ("none": no cache), else $XDG_CACHE_HOME/hone/compiled, else ~/.cache/hone/compiled.
//   out  receives the bytes, followed by a NUL
// Returns: HONE_OK; HONE_UNAVAILABLE (no NVRTC); HONE_INVALID_ARGUMENT with the compiler's message; HONE_OUT_OF_MEMORY.
// Threads: any.
hone_status hone_cuda_compile(
    hone_cuda_compiler *compiler, const hone_cuda_source *source, hone_buffer *out, hone_error *err);

#endif
