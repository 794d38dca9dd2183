// The environment of a measurement: what may differ without making a decision worthless, kept beside it.
#include "tune/tuner.h"

#include "base/json.h"

#include <string.h>

typedef struct source {
    const char *name, *path;
} source;

static const source files[] = {
    {"os", "/proc/sys/kernel/ostype"},
    {"os_release", "/proc/sys/kernel/osrelease"},
    {"governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"},
};

#if defined(__clang__)
static const char compiler[] = "clang " __clang_version__;
#else
static const char compiler[] = "gcc " __VERSION__;
#endif

static void put(hone_buffer *out, const char *name, const char *text, size_t size)
{
    if (size == 0) return;
    hone_buffer_text(out, out->data[out->size - 1] == '{' ? "" : ",");
    hone_json_string(out, name, strlen(name));
    hone_buffer_char(out, ':');
    hone_json_string(out, text, size);
}

static void put_file(hone_buffer *out, const source *from)
{
    enum { LIMIT = 4096 };
    hone_buffer text;
    hone_buffer_init(&text, out->allocator);
    if (hone_os_read_file(from->path, LIMIT, &text, NULL) == HONE_OK && text.data)
        put(out, from->name, text.data, strcspn(text.data, "\n"));
    hone_buffer_deinit(&text);
}

void hone_environment_json(const hone_device_info *device, hone_buffer *out)
{
    hone_buffer_char(out, '{');
    if (out->failed) return;
    put(out, "hone", hone_version(), strlen(hone_version()));
    put(out, "compiler", compiler, strlen(compiler));
    if (device->name) put(out, "device", device->name, strlen(device->name));
    for (size_t i = 0; i < sizeof files / sizeof files[0] && !out->failed; i++)
        put_file(out, &files[i]);
    hone_buffer_char(out, '}');
}
