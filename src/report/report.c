// A result as an HTML report: contest.js draws whatever stands in the page's place for data, with the result document
// in that place. Nothing else is loaded from anywhere.
#include "base/buffer.h"
#include "base/error.h"
#include "hone/result.h"
#include "tune/result/result.h"

#include <string.h>

static const char where[] = "report";

extern const char hone_report_page[];

// A "<" stands only inside strings of a JSON text, where its escape means the same and ends no script element.
static void put_harmless(hone_buffer *out, const char *json)
{
    for (const char *end; (end = strchr(json, '<')) != NULL; json = end + 1) {
        hone_buffer_append(out, json, (size_t)(end - json));
        hone_buffer_text(out, "\\u003c");
    }
    hone_buffer_text(out, json);
}

// Puts a JSON text into a page in place of its mark, so that nothing in it ends the element that it stands in, whatever names and
// texts it holds. The text is freed without a result at hand, hence the system's allocator.
static hone_status make_page(const char *page, const char *json, char **out_text, hone_error *err)
{
    static const char mark[] = "@HONE_REPORT_DATA@";
    const char *data = strstr(page, mark);
    hone_buffer out;
    hone_buffer_init(&out, hone_allocator_system());
    hone_buffer_append(&out, page, (size_t)(data - page));
    put_harmless(&out, json);
    hone_buffer_text(&out, data + sizeof mark - 1);
    *out_text = hone_buffer_take(&out);
    hone_buffer_deinit(&out);
    return *out_text != NULL ? HONE_OK : hone_fail_memory(err, where);
}

hone_status hone_result_report(const hone_result *result, char **out_text, hone_error *err)
{
    if (result == NULL || out_text == NULL) {
        if (out_text != NULL) *out_text = NULL;
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the result or out_text is NULL");
    }
    hone_buffer document;
    *out_text = NULL;
    hone_buffer_init(&document, hone_allocator_system());
    hone_result_document(result, true, &document);
    const hone_status status = document.failed
                                   ? hone_fail_memory(err, where)
                                   : make_page(hone_report_page, hone_buffer_string(&document), out_text, err);
    hone_buffer_deinit(&document);
    return status;
}
