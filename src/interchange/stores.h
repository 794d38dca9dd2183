// Pruning from the inside: hone_store_prune without the quarantine.
#ifndef HONE_INTERCHANGE_STORES_H
#define HONE_INTERCHANGE_STORES_H

#include "hone/interchange.h"
#include "registry/registry.h"

hone_status hone_prune_store(
    hone_registry *registry, hone_store *store, bool dry_run, hone_prune_report *out, hone_error *err);

#endif
