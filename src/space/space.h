// What a space is inside: parameters with their values, constraints, and the names that these read.
#ifndef HONE_SPACE_SPACE_H
#define HONE_SPACE_SPACE_H

#include "base/expression.h"
#include "hone/space.h"

#include <stdatomic.h>

enum {
    HONE_SPACE_LIST_VALUES = 4096,   // written out one by one
    HONE_SPACE_RANGE_VALUES = 65536, // of a range; positions fit 16 bits
    HONE_SPACE_MESSAGE_VALUES = 16   // shown in a message
};
_Static_assert(HONE_MAX_PARAMETERS <= 32, "sets of parameters are bits of a uint32_t");

typedef struct hone_space_value {
    hone_scalar scalar;
    const char *text; // "row"
    const char *word; // as a config's text has it: row, or "two words" in quotes
    const char *json;
} hone_space_value;

typedef struct hone_space_parameter {
    const char *name;
    const char *json_name; // in quotes
    hone_space_value *values;
    size_t count;
    bool integers;     // a config holds the integer itself, else the value's position
    size_t by_default; // position
} hone_space_parameter;

// A name that constraints read, in the order of the slots.
typedef enum hone_space_name_kind { HONE_NAME_PARAMETER, HONE_NAME_DEVICE, HONE_NAME_CALL } hone_space_name_kind;

typedef struct hone_space_name {
    hone_space_name_kind kind;
    const char *text;  // "block_m", "device.l1_bytes", "q.shape[1]"
    size_t index;      // PARAMETER: which; DEVICE: a row of hone_space_device_limits
    size_t constraint; // the first that reads it
} hone_space_name;

struct hone_space {
    hone_allocator allocator;
    atomic_size_t references;
    hone_arena arena;
    hone_space_parameter parameters[HONE_MAX_PARAMETERS];
    size_t parameter_count;
    hone_space_name *names;
    size_t name_count;
    const hone_expression **constraints;
    size_t constraint_count;
};

// The limits of a device that expressions may read: "device.threads", ...
typedef struct hone_space_device_limit {
    const char *name;
    int64_t (*read)(const hone_device_info *device);
} hone_space_device_limit;

extern const hone_space_device_limit hone_space_device_limits[];
extern const size_t hone_space_device_limit_count;
// All of them in one line, for messages.
extern const char hone_space_device_limit_names[];

// For who holds a space longer than its owner may.
hone_space *hone_space_retain(hone_space *space);
// The position of a value that equals scalar; -1 when there is none. true is not 1 here.
int64_t hone_space_find_value(const hone_space_parameter *parameter, const hone_scalar *scalar);
// Whether two configs of one space are the same.
bool hone_config_equal(const hone_config *a, const hone_config *b);
// The position of a config's number.
int64_t hone_space_find_number(const hone_space_parameter *parameter, int64_t number);
// What a config holds for a position.
int64_t hone_space_number(const hone_space_parameter *parameter, size_t position);
// -1 when there is no such parameter.
int hone_space_find_parameter(const hone_space *space, hone_view name);
// A value that came, for messages.
void hone_space_describe(const hone_scalar *value, char *out, size_t size);
// "16, 32, 64, 128", cut after HONE_SPACE_MESSAGE_VALUES.
void hone_space_list_values(const hone_space_parameter *parameter, char *out, size_t size);
// The positions of a config's values, which constraints may still refuse; HONE_INVALID_ARGUMENT names the value that
// is not one of its parameter's.
hone_status hone_space_find_positions(
    const hone_space *space, const hone_config *config, uint16_t *out_positions, hone_error *err);
// The text of those parameters of a config whose bits are set.
size_t hone_space_config_text(
    const hone_space *space, const hone_config *config, uint32_t which, char *out, size_t size);

// Of the value at a position of a parameter: numbers in their shortest form, quotes left off.
const char *hone_space_value_text(const hone_space *space, size_t index, size_t position);
// The number of valid configs; UINT64_MAX when there are more than that.
// Returns: HONE_OK; HONE_UNSUPPORTED, with bounds in the message, when the constraints connect more than 32 MiB can
// hold; HONE_INVALID_ARGUMENT for a constraint that cannot be evaluated; HONE_OUT_OF_MEMORY.
HONE_MUST_CHECK hone_status hone_bound_space_count(const hone_bound_space *space, uint64_t *out_count, hone_error *err);

#endif
