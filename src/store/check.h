// What an argument of a store's function may be: one answer for all kinds of stores. Each fills the error with the
// field, what came and what is asked for, and returns HONE_OK or HONE_INVALID_ARGUMENT.
#ifndef HONE_STORE_CHECK_H
#define HONE_STORE_CHECK_H

#include "store/ops.h"

// Names are short and printable, so that a message can show them.
typedef enum hone_check_rule {
    HONE_CHECK_NAME,
    HONE_CHECK_TEXT,
    HONE_CHECK_NAME_OR_NULL,
    HONE_CHECK_TEXT_OR_NULL
} hone_check_rule;

typedef struct hone_check_field {
    const char *name;
    const char *text;
    hone_check_rule rule;
} hone_check_field;

// A NULL store, or function to visit with.
hone_status hone_check_handles(const hone_store *store, bool has_visit, const char *where, hone_error *err);
hone_status hone_check_texts(const hone_check_field *fields, size_t count, const char *where, hone_error *err);
hone_status hone_check_key(const hone_store_key *key, const char *where, hone_error *err);
hone_status hone_check_regime(hone_regime regime, const char *where, hone_error *err);
hone_status hone_check_decision(const hone_store_decision *decision, const char *where, hone_error *err);
hone_status hone_check_decisions(
    const hone_store *store, const hone_store_decision *decisions, size_t count, const char *where, hone_error *err);
hone_status hone_check_measurement(const hone_store_measurement *measurement, hone_error *err);
hone_status hone_check_invocation(const hone_store_invocation *invocation, hone_error *err);
hone_status hone_check_alias(const hone_store_alias *alias, hone_error *err);
hone_status hone_check_foreign(const hone_store_foreign *foreign, hone_error *err);
hone_status hone_check_batch(const hone_store *store, const hone_store_batch *batch, hone_error *err);

#endif
