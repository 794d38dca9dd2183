// Finds NVIDIA's toolkit and PyPI's packages, and the libraries in them.
#ifndef HONE_PLATFORMS_CUDA_TOOLKIT_H
#define HONE_PLATFORMS_CUDA_TOOLKIT_H

#include "base/memory.h"
#include "os/os.h"

// Calls visit with the folder of each toolkit, and each folder of PyPI's packages with the same layout ("lib",
// "include"), until it returns false.
void hone_cuda_toolkit_folders(bool (*visit)(void *ctx, const char *folder), void *ctx);

// Opens the first library that exists: only the file that the environment variable names, if it is set; otherwise each
// of files by its name alone, then in the folders above.
//   files  {"libnvrtc.so.13", "libnvrtc.so.12", NULL}
// Returns: HONE_OK; HONE_UNAVAILABLE with what was tried; HONE_OUT_OF_MEMORY.
hone_status hone_cuda_open_library(
    const hone_allocator *allocator,
    const char *variable,
    const char *const *files,
    hone_library **out,
    hone_error *err);
// Writes the path of the first file that exists; the loader's own search comes first. Loads nothing. False if no file
// exists.
bool hone_cuda_find_library(const char *variable, const char *const *files, char *path, size_t size);

#endif
