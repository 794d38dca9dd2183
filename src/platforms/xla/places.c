#include "platforms/xla/plugin.h"

#include "base/error.h"
#include "platforms/shared/packages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char where[] = "xla.places", variable[] = "HONE_PJRT_PLUGIN";

// The places of plugins in packages, the newest first.
static const struct {
    hone_xla_kind kind;
    const char *file;
} usual[] = {
    {XLA_CPU, "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"},
    {XLA_CUDA, "jax_plugins/xla_cuda13/xla_cuda_plugin.so"},
    {XLA_CUDA, "jax_plugins/xla_cuda12/xla_cuda_plugin.so"},
    {XLA_TPU, "libtpu/libtpu.so"},
};

static bool look_in_packages(void *ctx, const char *folder)
{
    hone_buffer *out = ctx;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        char path[1024];
        int size = snprintf(path, sizeof path, "%s/%s", folder, usual[i].file);
        hone_buffer *place = &out[usual[i].kind];
        if (place->size == 0 && size > 0 && (size_t)size < sizeof path && hone_os_is_file(path))
            hone_buffer_text(place, path);
    }
    return true;
}

static bool kind_of_name(const char *name, size_t size, hone_xla_kind *out)
{
    for (int kind = 0; kind < XLA_KIND_COUNT; kind++) {
        const char *known = hone_xla_kind_name((hone_xla_kind)kind);
        *out = (hone_xla_kind)kind;
        if (strlen(known) == size && memcmp(known, name, size) == 0) return true;
    }
    return false;
}

// The kind according to a file's name: libtpu.so, xla_cuda_plugin.so. Any other name is for the CPU.
static hone_xla_kind kind_of_file(const char *path, size_t size)
{
    static const struct {
        const char *part;
        hone_xla_kind kind;
    } parts[] = {{"cuda", XLA_CUDA}, {"gpu", XLA_CUDA}, {"tpu", XLA_TPU}};
    size_t begin = size;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (memmem(path + begin, size - begin, parts[i].part, strlen(parts[i].part)) != NULL) return parts[i].kind;
    return XLA_CPU;
}

static hone_status take_named(const char *item, size_t size, hone_buffer out[XLA_KIND_COUNT], hone_error *err)
{
    const char *equals = memchr(item, '=', size), *path = item;
    hone_xla_kind kind = XLA_CPU;
    if (equals != NULL) {
        if (!kind_of_name(item, (size_t)(equals - item), &kind))
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, where, "%s=%s: '%.*s' is not one of cpu, cuda and tpu", variable, item,
                (int)(equals - item), item);
        path = equals + 1;
        size -= (size_t)(path - item);
    } else {
        kind = kind_of_file(path, size);
    }
    hone_buffer_clear(&out[kind]);
    hone_buffer_append(&out[kind], path, size);
    if (out[kind].failed || hone_os_is_file(hone_buffer_string(&out[kind]))) return HONE_OK;
    return hone_fail(
        err, HONE_UNAVAILABLE, where, "%s: there is no file %.160s", variable, hone_buffer_string(&out[kind]));
}

hone_status hone_xla_find_plugins(hone_buffer out[XLA_KIND_COUNT], hone_error *err)
{
    const char *named = hone_os_variable(variable);
    hone_status status = HONE_OK;
    bool any = named != NULL && named[0] != '\0';
    while (any && status == HONE_OK && *named != '\0') {
        size_t size = strcspn(named, ",");
        if (size > 0) status = take_named(named, size, out, err);
        named += size + (named[size] == ',');
    }
    if (!any) hone_packages_visit(look_in_packages, out);
    for (int kind = 0; status == HONE_OK && kind < XLA_KIND_COUNT; kind++)
        if (out[kind].failed) status = hone_fail_memory(err, where);
    return status;
}
