#include "store/postgresql/library.h"

#include "base/error.h"

#include <string.h>

static const char where[] = "store.postgresql.open";

static hone_status find(const hone_pq *pq, const char *name, void *out, hone_error *err)
{
    void *symbol = hone_library_symbol(pq->library, name);
    if (symbol == NULL)
        return hone_fail(err, HONE_UNAVAILABLE, where, "libpq.so.5 has no function %s: it is older than 9.3", name);
    memcpy(out, &symbol, sizeof symbol);
    return HONE_OK;
}

hone_status hone_pq_open(const hone_allocator *allocator, hone_pq *out, hone_error *err)
{
    static const char *const names[] = {"libpq.so.5", NULL};
    hone_error why = {.message = ""};
    memset(out, 0, sizeof *out);
    hone_status status = hone_library_open(allocator, names, &out->library, &why);
    if (status == HONE_OUT_OF_MEMORY) return hone_fail_memory(err, where);
    if (status != HONE_OK)
        return hone_fail(
            err, HONE_UNAVAILABLE, where,
            "stores on PostgreSQL need its client library libpq.so.5: install Debian's libpq5 (%.200s)", why.message);
#define HONE_PQ_FIND(name, result, parameters)                                                                         \
    if (status == HONE_OK) status = find(out, #name, &out->name, err);
    HONE_PQ_FUNCTIONS(HONE_PQ_FIND)
#undef HONE_PQ_FIND
#define HONE_PQ_FIND(name, result, parameters)                                                                         \
    if (status == HONE_OK) (void)find(out, #name, &out->name, NULL);
    HONE_PQ_LATER_FUNCTIONS(HONE_PQ_FIND)
#undef HONE_PQ_FIND
    if (status != HONE_OK) hone_pq_close(allocator, out);
    return status;
}

void hone_pq_close(const hone_allocator *allocator, hone_pq *pq)
{
    if (pq->library != NULL) hone_library_close(allocator, &pq->library);
}
