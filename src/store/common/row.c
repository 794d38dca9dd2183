// Records as rows: tables of columns, and the loops that walk them.
#include "store/common/row.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/text.h"
#include "store/common/job.h"
#include "store/records.h"

#include <stddef.h>
#include <string.h>

typedef enum field_kind {
    FIELD_TEXT,     // const char *; NULL is kept
    FIELD_KEY_TEXT, // const char *; NULL stands as "", since a key has no NULL
    FIELD_NAME,     // as the two, without control characters: messages show it
    FIELD_KEY_NAME,
    FIELD_BOOL,
    FIELD_REGIME,
    FIELD_FAILURE,
    FIELD_JOB_STATE,
    FIELD_U32,
    FIELD_U64,
    FIELD_REAL
} field_kind;

typedef struct hone_row_column {
    const char *name;
    field_kind kind;
    size_t offset; // in the record
} column;

static const column decision_columns[] = {
    {"device", FIELD_KEY_TEXT, offsetof(hone_store_decision, key.device)},
    {"algorithm", FIELD_KEY_TEXT, offsetof(hone_store_decision, key.algorithm)},
    {"version", FIELD_KEY_TEXT, offsetof(hone_store_decision, key.version)},
    {"key", FIELD_KEY_TEXT, offsetof(hone_store_decision, key.key)},
    {"regime", FIELD_REGIME, offsetof(hone_store_decision, regime)},
    {"spec", FIELD_TEXT, offsetof(hone_store_decision, key.spec)},
    {"call", FIELD_TEXT, offsetof(hone_store_decision, call)},
    {"kernel", FIELD_NAME, offsetof(hone_store_decision, kernel)},
    {"platform", FIELD_NAME, offsetof(hone_store_decision, platform)},
    {"config", FIELD_TEXT, offsetof(hone_store_decision, config)},
    {"source", FIELD_NAME, offsetof(hone_store_decision, source)},
    {"revision", FIELD_NAME, offsetof(hone_store_decision, revision)},
    {"verified", FIELD_BOOL, offsetof(hone_store_decision, verified)},
    {"time_ns", FIELD_REAL, offsetof(hone_store_decision, time_ns)},
    {"evidence", FIELD_TEXT, offsetof(hone_store_decision, evidence)},
    {"environment", FIELD_TEXT, offsetof(hone_store_decision, environment)},
};

// What a measurement and a failure share: what was tried stands first, with what and when it was made last.
#define TRIED_COLUMNS                                                                                                  \
    {"device", FIELD_KEY_TEXT, offsetof(hone_store_measured, key.device)},                                             \
        {"algorithm", FIELD_KEY_TEXT, offsetof(hone_store_measured, key.algorithm)},                                   \
        {"version", FIELD_KEY_TEXT, offsetof(hone_store_measured, key.version)},                                       \
        {"key", FIELD_KEY_TEXT, offsetof(hone_store_measured, key.key)},                                               \
        {"spec", FIELD_KEY_TEXT, offsetof(hone_store_measured, key.spec)},                                             \
        {"regime", FIELD_REGIME, offsetof(hone_store_measured, measurement.regime)},                                   \
        {"kernel", FIELD_KEY_NAME, offsetof(hone_store_measured, measurement.kernel)},                                 \
        {"config", FIELD_KEY_TEXT, offsetof(hone_store_measured, measurement.config)},                                 \
    {                                                                                                                  \
        "revision", FIELD_NAME, offsetof(hone_store_measured, measurement.revision)                                    \
    }
#define MADE_COLUMNS                                                                                                   \
    {"environment", FIELD_TEXT, offsetof(hone_store_measured, measurement.environment)},                               \
    {                                                                                                                  \
        "measured", FIELD_TEXT, offsetof(hone_store_measured, measurement.measured)                                    \
    }

static const column measurement_columns[] = {
    TRIED_COLUMNS,
    {"time_ns", FIELD_REAL, offsetof(hone_store_measured, measurement.time_ns)},
    {"low_ns", FIELD_REAL, offsetof(hone_store_measured, measurement.low_ns)},
    {"high_ns", FIELD_REAL, offsetof(hone_store_measured, measurement.high_ns)},
    {"samples", FIELD_U32, offsetof(hone_store_measured, measurement.samples)},
    {"max_error", FIELD_REAL, offsetof(hone_store_measured, measurement.max_error)},
    MADE_COLUMNS,
    {"samples_ns", FIELD_TEXT, offsetof(hone_store_measured, measurement.samples_ns)},
};

static const column failure_columns[] = {
    TRIED_COLUMNS,
    {"failure", FIELD_FAILURE, offsetof(hone_store_measured, measurement.failure)},
    {"reason", FIELD_TEXT, offsetof(hone_store_measured, measurement.reason)},
    MADE_COLUMNS,
};

// The device stands behind the call's key: a label is looked up without one.
static const column invocation_columns[] = {
    {"algorithm", FIELD_KEY_TEXT, offsetof(hone_store_invocation, key.algorithm)},
    {"version", FIELD_KEY_TEXT, offsetof(hone_store_invocation, key.version)},
    {"key", FIELD_KEY_TEXT, offsetof(hone_store_invocation, key.key)},
    {"device", FIELD_KEY_TEXT, offsetof(hone_store_invocation, key.device)},
    {"spec", FIELD_KEY_TEXT, offsetof(hone_store_invocation, key.spec)},
    {"call", FIELD_TEXT, offsetof(hone_store_invocation, call)},
    {"count", FIELD_U64, offsetof(hone_store_invocation, count)},
    {"first", FIELD_REAL, offsetof(hone_store_invocation, first)},
    {"last", FIELD_REAL, offsetof(hone_store_invocation, last)},
    {"kernel", FIELD_NAME, offsetof(hone_store_invocation, kernel)},
    {"decided", FIELD_NAME, offsetof(hone_store_invocation, decided)},
};

static const column alias_columns[] = {
    {"scheme", FIELD_KEY_TEXT, offsetof(hone_store_alias, scheme)},
    {"operation", FIELD_KEY_TEXT, offsetof(hone_store_alias, operation)},
    {"foreign_key", FIELD_KEY_TEXT, offsetof(hone_store_alias, foreign_key)},
    {"foreign_spec", FIELD_TEXT, offsetof(hone_store_alias, foreign_spec)},
    {"device", FIELD_TEXT, offsetof(hone_store_alias, key.device)},
    {"algorithm", FIELD_TEXT, offsetof(hone_store_alias, key.algorithm)},
    {"version", FIELD_TEXT, offsetof(hone_store_alias, key.version)},
    {"key", FIELD_TEXT, offsetof(hone_store_alias, key.key)},
    {"spec", FIELD_TEXT, offsetof(hone_store_alias, key.spec)},
};

static const column foreign_columns[] = {
    {"scheme", FIELD_KEY_TEXT, offsetof(hone_store_foreign, scheme)},
    {"operation", FIELD_KEY_TEXT, offsetof(hone_store_foreign, operation)},
    {"device", FIELD_KEY_TEXT, offsetof(hone_store_foreign, device)},
    {"foreign_key", FIELD_KEY_TEXT, offsetof(hone_store_foreign, foreign_key)},
    {"text", FIELD_TEXT, offsetof(hone_store_foreign, text)},
    {"origin", FIELD_TEXT, offsetof(hone_store_foreign, origin)},
};

static const column quarantine_columns[] = {
    {"kind", FIELD_KEY_TEXT, offsetof(hone_store_quarantined, kind)},
    {"record", FIELD_KEY_TEXT, offsetof(hone_store_quarantined, record)},
    {"reason", FIELD_TEXT, offsetof(hone_store_quarantined, reason)},
    {"found", FIELD_REAL, offsetof(hone_store_quarantined, found)},
};

static const column job_columns[] = {
    {"device", FIELD_KEY_TEXT, offsetof(hone_job, key.device)},
    {"algorithm", FIELD_KEY_TEXT, offsetof(hone_job, key.algorithm)},
    {"version", FIELD_KEY_TEXT, offsetof(hone_job, key.version)},
    {"key", FIELD_KEY_TEXT, offsetof(hone_job, key.key)},
    {"spec", FIELD_TEXT, offsetof(hone_job, key.spec)},
    {"call", FIELD_TEXT, offsetof(hone_job, call)},
    {"state", FIELD_JOB_STATE, offsetof(hone_job, state)},
    {"priority", FIELD_REAL, offsetof(hone_job, priority)},
    {"round", FIELD_U32, offsetof(hone_job, round)},
    {"weight", FIELD_REAL, offsetof(hone_job, weight)},
    {"count", FIELD_U64, offsetof(hone_job, count)},
    {"seconds", FIELD_REAL, offsetof(hone_job, seconds)},
    {"tries", FIELD_U32, offsetof(hone_job, tries)},
    {"holder", FIELD_TEXT, offsetof(hone_job, holder)},
    {"reason", FIELD_TEXT, offsetof(hone_job, reason)},
    {"lock", FIELD_U64, offsetof(hone_job, lock)},
    {"boot", FIELD_U64, offsetof(hone_job, boot)},
};

enum {
    JOB_COUNT = sizeof job_columns / sizeof *job_columns,
    DECISION_COUNT = sizeof decision_columns / sizeof *decision_columns,
    MEASUREMENT_COUNT = sizeof measurement_columns / sizeof *measurement_columns,
    FAILURE_COUNT = sizeof failure_columns / sizeof *failure_columns,
    INVOCATION_COUNT = sizeof invocation_columns / sizeof *invocation_columns,
    ALIAS_COUNT = sizeof alias_columns / sizeof *alias_columns,
    FOREIGN_COUNT = sizeof foreign_columns / sizeof *foreign_columns,
    QUARANTINE_COUNT = sizeof quarantine_columns / sizeof *quarantine_columns
};
_Static_assert((int)DECISION_COUNT <= (int)HONE_ROW_CELLS, "a decision fits a row");
_Static_assert((int)JOB_COUNT <= (int)HONE_ROW_CELLS, "a job fits a row");
_Static_assert((int)MEASUREMENT_COUNT <= (int)HONE_ROW_CELLS, "a measurement fits a row");

const hone_row_shape hone_row_decision = {"decision", decision_columns, DECISION_COUNT, 5, 0};
const hone_row_shape hone_row_measurement = {
    "measurement", measurement_columns, MEASUREMENT_COUNT, 8, MEASUREMENT_COUNT - 3};
const hone_row_shape hone_row_failure = {"failure", failure_columns, FAILURE_COUNT, 8, FAILURE_COUNT - 2};
const hone_row_shape hone_row_invocation = {"invocation", invocation_columns, INVOCATION_COUNT, 5, 0};
const hone_row_shape hone_row_alias = {"alias", alias_columns, ALIAS_COUNT, 3, 0};
const hone_row_shape hone_row_foreign = {"foreign_config", foreign_columns, FOREIGN_COUNT, 4, 0};
const hone_row_shape hone_row_job = {"job", job_columns, JOB_COUNT, 4, 0};
const hone_row_shape hone_row_quarantine = {"quarantine", quarantine_columns, QUARANTINE_COUNT, 2, 0};

const char *hone_row_column_name(const hone_row_shape *shape, size_t index)
{
    return shape->columns[index].name;
}

hone_cell_kind hone_row_column_kind(const hone_row_shape *shape, size_t index)
{
    switch (shape->columns[index].kind) {
    case FIELD_TEXT:
    case FIELD_KEY_TEXT:
    case FIELD_NAME:
    case FIELD_KEY_NAME:
        return HONE_CELL_TEXT;
    case FIELD_REAL:
        return HONE_CELL_REAL;
    default:
        return HONE_CELL_INTEGER;
    }
}

static hone_cell text_cell(const char *text)
{
    hone_cell cell = {0};
    if (text == NULL) return cell;
    cell.kind = HONE_CELL_TEXT;
    cell.size = strlen(text);
    cell.as.text = text;
    return cell;
}

static hone_cell integer_cell(int64_t integer)
{
    return (hone_cell){.kind = HONE_CELL_INTEGER, .as.integer = integer};
}

static const char *text_field(const void *field)
{
    return *(const char *const *)field;
}

static hone_cell cell_of(field_kind kind, const void *field)
{
    switch (kind) {
    case FIELD_TEXT:
    case FIELD_NAME:
        return text_cell(text_field(field));
    case FIELD_KEY_TEXT:
    case FIELD_KEY_NAME:
        return text_cell(text_field(field) == NULL ? "" : text_field(field));
    case FIELD_BOOL:
        return integer_cell(*(const bool *)field);
    case FIELD_REGIME:
        return integer_cell((int64_t) * (const hone_regime *)field);
    case FIELD_FAILURE:
        return integer_cell((int64_t) * (const hone_failure *)field);
    case FIELD_JOB_STATE:
        return integer_cell((int64_t) * (const hone_job_state *)field);
    case FIELD_U32:
        return integer_cell(*(const uint32_t *)field);
    case FIELD_U64: {
        uint64_t value = *(const uint64_t *)field;
        return integer_cell(value > INT64_MAX ? INT64_MAX : (int64_t)value);
    }
    case FIELD_REAL:
        break;
    }
    return (hone_cell){.kind = HONE_CELL_REAL, .as.real = *(const double *)field + 0.0};
}

void hone_row_of(const hone_row_shape *shape, const void *record, hone_row *out)
{
    out->count = shape->count;
    out->first_count = shape->first_count;
    for (size_t i = 0; i < shape->count; i++)
        out->cells[i] = cell_of(shape->columns[i].kind, (const char *)record + shape->columns[i].offset);
}

static bool read_text(const hone_cell *cell, bool is_key, void *field)
{
    if (cell->kind != HONE_CELL_TEXT && (is_key || cell->kind != HONE_CELL_NULL)) return false;
    bool none = cell->kind == HONE_CELL_NULL || (is_key && cell->size == 0);
    *(const char **)field = none ? NULL : cell->as.text;
    return true;
}

// Whoever can write the store can write a checksum, too, and names stand in logs and on terminals.
static bool is_printable(const hone_cell *cell)
{
    return cell->kind != HONE_CELL_TEXT || hone_text_control(cell->as.text, cell->size) == cell->size;
}

static bool read_real(const hone_cell *cell, double *field)
{
    if (cell->kind != HONE_CELL_REAL) return false;
    *field = cell->as.real;
    return true;
}

// The largest value of each integer field.
static int64_t integer_limit(field_kind kind)
{
    switch (kind) {
    case FIELD_BOOL:
        return 1;
    case FIELD_REGIME:
        return HONE_REGIME_COUNT - 1;
    case FIELD_FAILURE:
        return HONE_FAILURE_COUNT - 1;
    case FIELD_JOB_STATE:
        return HONE_JOB_ASIDE;
    case FIELD_U32:
        return UINT32_MAX;
    default:
        return INT64_MAX;
    }
}

static void write_integer(field_kind kind, int64_t value, void *field)
{
    switch (kind) {
    case FIELD_BOOL:
        *(bool *)field = value != 0;
        break;
    case FIELD_REGIME:
        *(hone_regime *)field = (hone_regime)value;
        break;
    case FIELD_FAILURE:
        *(hone_failure *)field = (hone_failure)value;
        break;
    case FIELD_JOB_STATE:
        *(hone_job_state *)field = (hone_job_state)value;
        break;
    case FIELD_U32:
        *(uint32_t *)field = (uint32_t)value;
        break;
    default:
        *(uint64_t *)field = (uint64_t)value;
        break;
    }
}

static bool read_integer(field_kind kind, const hone_cell *cell, void *field)
{
    if (cell->kind != HONE_CELL_INTEGER || cell->as.integer < 0 || cell->as.integer > integer_limit(kind)) return false;
    write_integer(kind, cell->as.integer, field);
    return true;
}

static bool read_cell(field_kind kind, const hone_cell *cell, void *field)
{
    switch (kind) {
    case FIELD_TEXT:
    case FIELD_KEY_TEXT:
        return read_text(cell, kind == FIELD_KEY_TEXT, field);
    case FIELD_NAME:
    case FIELD_KEY_NAME:
        return read_text(cell, kind == FIELD_KEY_NAME, field) && is_printable(cell);
    case FIELD_REAL:
        return read_real(cell, field);
    default:
        return read_integer(kind, cell, field);
    }
}

bool hone_row_read(const hone_row_shape *shape, const hone_row *row, void *record, size_t record_size)
{
    memset(record, 0, record_size);
    if (row->count != shape->count) return false;
    for (size_t i = 0; i < shape->count; i++)
        if (!read_cell(shape->columns[i].kind, &row->cells[i], (char *)record + shape->columns[i].offset)) return false;
    return true;
}

static size_t checked_count(const hone_row *row)
{
    size_t count = row->count;
    hone_assert(count <= HONE_ROW_CELLS);
    while (row->first_count > 0 && count > row->first_count && row->cells[count - 1].kind == HONE_CELL_NULL)
        count--;
    return count;
}

// Two words a cell, and the hash of all words:
//
//     | size of the text 56 | kind 8 |   | hash of the text, or the bits of the number 64 |
//
// With kind and size beside each value no two rows run together, as "a", "bc" and "ab", "c" would. It finds damage, not
// intent: whoever can write the store can write a checksum.
uint64_t hone_row_checksum(const hone_row *row)
{
    uint64_t words[HONE_ROW_CELLS * 2];
    const size_t count = checked_count(row);
    for (size_t i = 0; i < count; i++) {
        const hone_cell *cell = &row->cells[i];
        words[i * 2] = (uint64_t)cell->kind | (uint64_t)cell->size << 8;
        if (cell->kind == HONE_CELL_TEXT)
            words[i * 2 + 1] = hone_hash64(cell->as.text, cell->size);
        else
            memcpy(&words[i * 2 + 1], &cell->as.integer, sizeof *words);
    }
    return hone_hash64(words, count * 2 * sizeof *words);
}

static int compare_text(const hone_cell *a, const hone_cell *b)
{
    int order = memcmp(a->as.text, b->as.text, a->size < b->size ? a->size : b->size);
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

static double number_of(const hone_cell *cell)
{
    return cell->kind == HONE_CELL_INTEGER ? (double)cell->as.integer : cell->as.real;
}

static int compare_cell(const hone_cell *a, const hone_cell *b)
{
    static const int ranks[] = {
        [HONE_CELL_NULL] = 0, [HONE_CELL_INTEGER] = 1, [HONE_CELL_REAL] = 1, [HONE_CELL_TEXT] = 2};
    int order = ranks[a->kind] - ranks[b->kind];
    if (order != 0 || a->kind == HONE_CELL_NULL) return order;
    if (a->kind == HONE_CELL_TEXT) return compare_text(a, b);
    return (number_of(a) > number_of(b)) - (number_of(a) < number_of(b));
}

int hone_row_compare(const hone_row *a, const hone_row *b, size_t count)
{
    hone_assert(count <= a->count && count <= b->count);
    for (size_t i = 0; i < count; i++) {
        int order = compare_cell(&a->cells[i], &b->cells[i]);
        if (order != 0) return order;
    }
    return 0;
}

bool hone_spec_agrees(const char *a, const char *b)
{
    return a == NULL || b == NULL || strcmp(a, b) == 0;
}

bool hone_key_is_whole(const hone_store_key *filter)
{
    return filter->device != NULL && filter->algorithm != NULL && filter->version != NULL && filter->key != NULL;
}

static bool field_matches(const char *filter, const char *text)
{
    return filter == NULL || (text != NULL && strcmp(filter, text) == 0);
}

bool hone_key_matches(const hone_store_key *filter, const hone_store_key *key)
{
    return field_matches(filter->device, key->device) && field_matches(filter->algorithm, key->algorithm) &&
           field_matches(filter->version, key->version) && field_matches(filter->key, key->key) &&
           hone_spec_agrees(filter->spec, key->spec);
}
