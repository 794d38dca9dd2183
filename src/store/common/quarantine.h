// Records that are set aside: how they are written down.
#ifndef HONE_STORE_COMMON_QUARANTINE_H
#define HONE_STORE_COMMON_QUARANTINE_H

#include "base/buffer.h"
#include "store/common/row.h"

// What stands in the quarantine for a row. Its columns are written to record as a JSON object, each text cut at 64 KiB;
// the result borrows record and reason.
hone_store_quarantined hone_quarantine_row(
    const hone_row_shape *shape, const hone_row *row, const char *reason, hone_buffer *record);

#endif
