// The tables behind a memory store, for kinds that keep them elsewhere as well (store/json).
#ifndef HONE_STORE_MEMORY_MEMORY_H
#define HONE_STORE_MEMORY_MEMORY_H

#include "store/memory/table.h"
#include "store/ops.h"

extern const hone_store_ops hone_memory_store_ops;

typedef struct hone_memory_tables {
    hone_table *tables;
    size_t count;
    hone_table_changes *changes;
} hone_memory_tables;

// The tables of an open memory store, which from now on leaves what its functions change to be committed or taken back
// by the caller. They are the store's.
hone_memory_tables hone_memory_hold(hone_store *store);

#endif
