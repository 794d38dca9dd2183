#include "base/texts.h"

#include "base/buffer.h"

const char *hone_texts_keep(hone_texts *texts, hone_view text)
{
    const char *kept = hone_arena_text(&texts->arena, text.data, text.size);
    texts->failed |= kept == NULL;
    return kept != NULL ? kept : "";
}

// Keeps what a buffer has come to, and ends the buffer.
static const char *keep_buffer(hone_texts *texts, hone_buffer *buffer)
{
    texts->failed |= buffer->failed;
    const char *kept = hone_texts_keep(texts, (hone_view){hone_buffer_string(buffer), buffer->size});
    hone_buffer_deinit(buffer);
    return kept;
}

const char *hone_texts_format(hone_texts *texts, const char *format, ...)
{
    va_list list;
    hone_buffer text;
    hone_buffer_init(&text, texts->arena.allocator);
    va_start(list, format);
    hone_buffer_format_list(&text, format, list);
    va_end(list);
    return keep_buffer(texts, &text);
}

const char *hone_texts_compact(hone_texts *texts, hone_view value)
{
    hone_buffer text;
    hone_buffer_init(&text, texts->arena.allocator);
    hone_json_compact(value, &text);
    return keep_buffer(texts, &text);
}

const char *hone_texts_string(hone_texts *texts, hone_view string)
{
    hone_buffer text;
    hone_buffer_init(&text, texts->arena.allocator);
    if (hone_json_decode(string, &text)) return keep_buffer(texts, &text);
    texts->failed |= text.failed;
    hone_buffer_deinit(&text);
    return NULL;
}
