#include "store/common/quarantine.h"

#include "base/assert.h"
#include "base/json.h"
#include "os/os.h"

#include <inttypes.h>

// Of one text: a damaged size may claim any.
enum { TEXT_LIMIT = 64 << 10 };

static void write_cell(hone_buffer *out, const hone_cell *cell)
{
    switch (cell->kind) {
    case HONE_CELL_NULL:
        hone_buffer_text(out, "null");
        break;
    case HONE_CELL_TEXT:
        hone_json_string(out, cell->as.text, cell->size < TEXT_LIMIT ? cell->size : TEXT_LIMIT);
        break;
    case HONE_CELL_INTEGER:
        hone_buffer_format(out, "%" PRId64, cell->as.integer);
        break;
    case HONE_CELL_REAL:
        hone_json_number(out, cell->as.real);
        break;
    }
}

hone_store_quarantined hone_quarantine_row(
    const hone_row_shape *shape, const hone_row *row, const char *reason, hone_buffer *record)
{
    hone_assert(row->count <= shape->count && reason != NULL);
    hone_buffer_clear(record);
    for (size_t i = 0; i < row->count; i++) {
        hone_buffer_format(record, "%s\"%s\":", i == 0 ? "{" : ",", hone_row_column_name(shape, i));
        write_cell(record, &row->cells[i]);
    }
    hone_buffer_char(record, '}');
    return (hone_store_quarantined){
        .kind = shape->name,
        .record = hone_buffer_string(record),
        .reason = reason,
        .found = hone_os_now_utc(),
    };
}
