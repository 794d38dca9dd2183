// What of hone's decisions another system can run, as entries of its own.
#ifndef HONE_INTERCHANGE_MAPPING_H
#define HONE_INTERCHANGE_MAPPING_H

#include "base/texts.h"
#include "interchange/exporter.h"

typedef struct hone_mapped {
    hone_store_foreign entry; // origin: the file that the system looks for it in
    bool has_words;           // says more than where to run: it stands in place of what was imported under its key
    bool is_told;             // what was imported stands in its place
} hone_mapped;

typedef struct hone_mapping {
    hone_texts texts;
    hone_mapped *items; // sorted
    size_t count, capacity;
} hone_mapping;

// Maps every decision that is to be exported, and tells those that have no entry. hone_mapping_deinit also after a
// failure.
hone_status hone_map_ejkernel(const hone_exporter *exporter, hone_mapping *out, hone_error *err);
void hone_mapping_deinit(hone_mapping *mapping);
// The entry of an operation, device and key; NULL: there is none.
hone_mapped *hone_mapping_find(const hone_mapping *mapping, const hone_store_foreign *like);

#endif
