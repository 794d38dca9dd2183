// Operations of other libraries that are calls of hone's: a row each, with what their parameters are here.
#ifndef HONE_CALL_FOREIGN_H
#define HONE_CALL_FOREIGN_H

#include "base/json.h"
#include "base/text.h"

typedef enum hone_foreign_library { HONE_FOREIGN_EJKERNEL, HONE_FOREIGN_TOKAMAX } hone_foreign_library;

// JSON is canonical: as hone_json_canonical writes it.
typedef struct hone_foreign_parameter {
    const char *theirs;
    const char *ours; // hone's parameter; NULL: hone has none, and can take only values that say nothing
    const char *json; // what it says when nobody sets it; NULL: null
    // A value of which this is true says `says`, an argument of hone's call, whatever ours is. NULL: there is none.
    bool (*is)(const json_t *value);
    const char *says;
} hone_foreign_parameter;

// A value that callers give to a parameter which hone lacks.
typedef struct hone_foreign_value {
    const char *theirs, *json;
} hone_foreign_value;

typedef struct hone_foreign_operation {
    hone_foreign_library library;
    const char *name;      // "flash_attention@v2"; tokamax's class, "DotProductAttention"
    const char *algorithm; // hone's
    hone_foreign_parameter
        parameters[24];          // to the first without a name; ejkernel's sorted by name, as its text has them
    hone_foreign_value often[8]; // what a search for a call's arguments tries, likeliest first
} hone_foreign_operation;

extern const hone_foreign_operation hone_foreign_operations[];
extern const size_t hone_foreign_operation_count;

// NULL: the library has no such operation, or hone has nothing for it.
const hone_foreign_operation *hone_foreign_find(hone_foreign_library library, hone_view name);
// The first parameter of this name at or behind `from`, which is NULL at first; NULL: there is no more.
const hone_foreign_parameter *hone_foreign_parameter_find(
    const hone_foreign_operation *operation, const hone_foreign_parameter *from, const char *theirs);

#endif
