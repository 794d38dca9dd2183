// T4 results, the form in which tuners exchange what they measured.
#include "recorded/inside.h"

#include "base/json.h"

static void write_samples(const hone_recorded_row *row, hone_buffer *out)
{
    hone_buffer_text(out, ",\"runtimes\":[");
    for (size_t i = 0; i < row->sample_count; i++) {
        if (i > 0) hone_buffer_char(out, ',');
        hone_json_number(out, row->samples[i]);
    }
    hone_buffer_char(out, ']');
}

static void write_cost(hone_buffer *out, const char *name, double value)
{
    hone_buffer_format(out, "\"%s\":", name);
    hone_json_number(out, value);
}

static void write_configuration(const hone_space *space, const hone_config *config, hone_buffer *out)
{
    size_t size = hone_config_json(space, config, NULL, 0) + 1;
    char *text = hone_alloc(&out->allocator, size);
    if (text == NULL) {
        out->failed = true;
        return;
    }
    hone_config_json(space, config, text, size);
    hone_buffer_text(out, text);
    hone_free(&out->allocator, text);
}

static void write_row(const hone_space *space, const hone_recorded_row *row, hone_buffer *out)
{
    bool correct = row->failure == HONE_FAILURE_NONE;
    hone_buffer_text(out, "{\"configuration\":");
    write_configuration(space, &row->config, out);
    hone_buffer_text(out, ",\"times\":{");
    write_cost(out, "compilation", row->compile);
    hone_buffer_char(out, ',');
    write_cost(out, "verification", row->verification);
    hone_buffer_char(out, ',');
    write_cost(out, "benchmark", row->benchmark);
    hone_buffer_char(out, ',');
    write_cost(out, "framework", row->framework);
    write_samples(row, out);
    hone_buffer_format(
        out, "},\"invalidity\":\"%s\",\"correctness\":%d,\"measurements\":[", hone_recorded_invalidity(row->failure),
        correct ? 1 : 0);
    if (correct) {
        hone_buffer_text(out, "{\"name\":\"time\",\"value\":");
        hone_json_number(out, row->time);
        hone_buffer_text(out, ",\"unit\":\"milliseconds\"}");
    }
    hone_buffer_text(out, "],\"objectives\":[\"time\"]}");
}

void hone_recorded_write_t4(const hone_space *space, const hone_recorded_row *rows, size_t count, hone_buffer *out)
{
    hone_buffer_text(out, "{\"results\":[");
    for (size_t i = 0; i < count; i++) {
        hone_buffer_text(out, i == 0 ? "\n" : ",\n");
        write_row(space, &rows[i], out);
    }
    hone_buffer_text(out, "\n]}\n");
}
