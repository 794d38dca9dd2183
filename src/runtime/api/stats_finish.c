// Writes the report that HONE_STATS requests, at the end of a runtime.
#include "runtime/api/stats.h"

#include "base/error.h"
#include "os/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "stats.finish";

static void into_buffer(void *ctx, const char *text, size_t size)
{
    hone_buffer_append(ctx, text, size);
}

// Writes one line, with an empty one before it, which ends a line that another process could not write completely.
static hone_status append_document(const char *path, const hone_buffer *text, hone_error *err)
{
    return hone_os_append_file(path, hone_buffer_string(text), text->size, err);
}

// In a folder each runtime writes its own file.
static hone_status write_beside_others(const char *folder, const hone_buffer *text, hone_error *err)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/hone-%d-%016" PRIx64 ".json", folder, hone_os_process_id(), hone_os_now_ns());
    return hone_os_replace_file(path, hone_buffer_string(text), text->size, err);
}

void hone_stats_finish(hone_runtime *rt)
{
    hone_buffer text;
    hone_error why;
    if (rt == NULL || rt->stats_to == NULL || atomic_exchange(&rt->told_stats, true)) return;
    const bool is_line = strcmp(rt->stats_to, "1") == 0;
    if (!is_line && rt->tally.first == NULL) return; // the program made no calls; most runs of the command do not
    hone_buffer_init(&text, rt->allocator);
    hone_buffer_text(&text, is_line ? "hone: " : "\n");
    hone_status status =
        hone_stats_print(rt, NULL, 0, is_line ? HONE_STATS_LINE : HONE_STATS_JSON, into_buffer, &text, &why);
    if (status == HONE_OK && text.failed) status = hone_fail_memory(&why, where);
    if (status == HONE_OK && is_line)
        hone_os_tell(hone_buffer_string(&text), text.size);
    else if (status == HONE_OK && hone_os_is_folder(rt->stats_to))
        status = write_beside_others(rt->stats_to, &text, &why);
    else if (status == HONE_OK)
        status = append_document(rt->stats_to, &text, &why);
    if (status != HONE_OK)
        hone_log_write(&rt->log, HONE_LOG_WARNING, "HONE_STATS=%s was not written: %s", rt->stats_to, why.message);
    hone_buffer_deinit(&text);
}
