// Dynamic libraries. They stay mapped after a close (RTLD_NODELETE): a math library that has started threads
// would take their code from under them.
#include "base/error.h"
#include "base/memory.h"
#include "os/os.h"

#include <dlfcn.h>

struct hone_library {
    void *handle;
};

// Tries the names in turn; the loader's words for each stand in words.
static void *open_first(const char *const *names, hone_buffer *words)
{
    for (; *names; names++) {
        void *handle = dlopen(*names, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (handle) return handle;
        const char *reason = dlerror();
        if (words->size > 0) hone_buffer_text(words, "; ");
        hone_buffer_text(words, reason ? reason : *names);
    }
    return NULL;
}

hone_status hone_library_open(
    const hone_allocator *allocator, const char *const *names, hone_library **out, hone_error *err)
{
    static const char where[] = "os.library.open";
    *out = NULL;
    hone_buffer words;
    hone_buffer_init(&words, *allocator);
    hone_status status = HONE_OK;
    void *handle = open_first(names, &words);
    hone_library *library = handle ? hone_alloc(allocator, sizeof *library) : NULL;
    if (!handle) {
        const char *text = words.size > 0 ? hone_buffer_string(&words) : "no name was given";
        status = hone_fail(err, HONE_UNAVAILABLE, where, "%s", text);
    } else if (!library) {
        dlclose(handle);
        status = hone_fail_memory(err, where);
    } else {
        library->handle = handle;
        *out = library;
    }
    hone_buffer_deinit(&words);
    return status;
}

void *hone_library_symbol(hone_library *library, const char *name)
{
    return dlsym(library->handle, name);
}

void hone_library_close(const hone_allocator *allocator, hone_library **library)
{
    if (!*library) return;
    dlclose((*library)->handle);
    hone_free(allocator, *library);
    *library = NULL;
}
