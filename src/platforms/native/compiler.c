#include "platforms/native/compiler.h"

#include "base/error.h"
#include "os/mutex.h"
#include "os/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "native.compiler";

// The last answer of the compiler. Running a program takes milliseconds, and a contest compiles hundreds of configs.
static struct {
    hone_mutex mutex;
    hone_native_compiler compiler;
    hone_file_stamp stamp;
} known = {.mutex = HONE_MUTEX_LONG_INITIALIZER};

// The line that contains " version ": both gcc and clang print one.
static void take_version(const char *words, char *out, size_t size)
{
    const char *found = strstr(words, " version "), *line = found;
    out[0] = '\0';
    while (line != NULL && line > words && line[-1] != '\n')
        line--;
    if (line != NULL) snprintf(out, size, "%.*s", (int)strcspn(line, "\n"), line);
}

static hone_status ask(hone_native_compiler *compiler, const hone_file_stamp *stamp, hone_error *err)
{
    enum { SECONDS = 20, LIMIT = 64 << 10 };
    const char *const arguments[] = {compiler->path, "-v", NULL};
    int code = 0;
    hone_buffer words;
    hone_buffer_init(&words, hone_allocator_system());
    hone_status status =
        hone_process_run(arguments, hone_os_now_ns() + SECONDS * UINT64_C(1000000000), LIMIT, &words, &code, err);
    take_version(hone_buffer_string(&words), compiler->version, sizeof compiler->version);
    // A compiler that prints nothing is identified by its file.
    if (status == HONE_OK && code != 0) hone_buffer_clear(&words);
    hone_buffer_format(&words, "\n%s %" PRIu64 " %" PRId64, compiler->path, stamp->size, stamp->time_ns);
    hone_hash_sha256(hone_buffer_string(&words), words.size, compiler->identity);
    if (status == HONE_OK && words.failed) status = hone_fail_memory(err, where);
    hone_buffer_deinit(&words);
    return status;
}

static hone_status ask_once(hone_native_compiler *compiler, hone_error *err)
{
    const hone_file_stamp stamp = hone_os_file_stamp(compiler->path);
    hone_status status = HONE_OK;
    hone_mutex_lock(&known.mutex);
    if (strcmp(known.compiler.path, compiler->path) == 0 && known.stamp.size == stamp.size &&
        known.stamp.time_ns == stamp.time_ns)
        *compiler = known.compiler;
    else
        status = ask(compiler, &stamp, err);
    if (status == HONE_OK) {
        known.compiler = *compiler;
        known.stamp = stamp;
    }
    hone_mutex_unlock(&known.mutex);
    return status;
}

hone_status hone_native_find_compiler(hone_native_compiler *out, hone_error *err)
{
    const char *named = hone_os_variable("HONE_CC");
    const char *name = named != NULL && named[0] != '\0' ? named : "cc";
    memset(out, 0, sizeof *out);
    if (hone_os_find_program(name, out->path, sizeof out->path)) return ask_once(out, err);
    return hone_fail(
        err, HONE_UNAVAILABLE, where,
        "C sources need a compiler, and there is no %.200s: install gcc or clang, or name one in HONE_CC", name);
}

void hone_native_describe_compiler(hone_buffer *out)
{
    hone_native_compiler compiler;
    hone_error why = {.message = ""};
    if (hone_native_find_compiler(&compiler, &why) != HONE_OK)
        hone_buffer_text(out, why.message);
    else
        hone_buffer_format(
            out, "C sources of packs: %s, %s", compiler.path,
            compiler.version[0] != '\0' ? compiler.version : "which does not say its version");
}
