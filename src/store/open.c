// Opening a store by its URL: which kinds there are.
#include "store/ops.h"

#include "base/error.h"
#include "base/structs.h"

#include <string.h>

typedef struct store_kind {
    const char *scheme;
    const hone_store_ops *ops; // NULL: a known kind that is not there yet
} store_kind;

static const store_kind kinds[] = {
    {"memory:", &hone_memory_store_ops},
    {"sqlite:", &hone_sqlite_store_ops},
    {"json:", &hone_json_store_ops},
    {"postgresql:", NULL},
    {"postgres:", NULL},
};

static const store_kind *find_kind(const char *url)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(url, kinds[i].scheme, strlen(kinds[i].scheme)) == 0) return &kinds[i];
    return NULL;
}

static hone_status check_kind(const char *url, const store_kind *kind, hone_error *err)
{
    static const char controls[] =
        "\x01\x02\x03\x04\x05\x06\x07\b\t\n\v\f\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18"
        "\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7f";
    enum { URL_LIMIT = 4096 };
    if (strnlen(url, URL_LIMIT + 1) > URL_LIMIT)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "store.open", "the store's URL is too long, over %d bytes: '%.60s...'",
            (int)URL_LIMIT, url);
    if (strcspn(url, controls) < strlen(url))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "store.open", "the store's URL has a control character as byte %zu: '%.*s...'",
            strcspn(url, controls), (int)strcspn(url, controls), url);
    if (kind == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "store.open",
            "'%s' is no store URL: write sqlite:PATH, json:FOLDER or json:FILE.json, or memory: for none", url);
    if (kind->ops == NULL)
        return hone_fail(
            err, HONE_UNSUPPORTED, "store.open", "'%s': stores of the kind %s are not there yet: use sqlite:PATH", url,
            kind->scheme);
    return HONE_OK;
}

hone_status hone_store_check_url(const char *url, hone_error *err)
{
    return check_kind(url, find_kind(url), err);
}

static hone_status open_kind(
    const store_kind *kind,
    const hone_allocator *allocator,
    const hone_log *log,
    const char *url,
    bool read_only,
    hone_store **out,
    hone_error *err)
{
    const char *location = url + strlen(kind->scheme);
    if (!read_only) return kind->ops->open(allocator, log, location, out, err);
    if (kind->ops->open_read_only != NULL) return kind->ops->open_read_only(allocator, log, location, out, err);
    return hone_fail(
        err, HONE_UNSUPPORTED, "store.open", "'%s': only a store sqlite:PATH can be opened for reading alone", url);
}

// SQLite's connections must not be carried into a child, nor closed there: they are closed before, and opened again by
// both.
static void before_fork(void *ctx)
{
    hone_store *store = ctx;
    store->in_use = hone_mutex_is_mine(&store->mutex) || !hone_mutex_try_lock(&store->mutex);
    if (store->in_use) return;
    if (store->ops->rest != NULL) {
        store->ops->rest(store);
        store->rests = true;
    }
    hone_mutex_unlock(&store->mutex);
}

static void in_child(void *ctx)
{
    hone_store *store = ctx;
    store->is_lost = store->is_lost || (store->in_use && store->ops->rest != NULL);
}

static hone_status finish_open(hone_store *store, const char *url, hone_error *err)
{
    store->url = hone_copy_text(&store->allocator, url, strlen(url));
    if (store->url == NULL) {
        store->ops->close(store);
        return hone_fail_memory(err, "store.open");
    }
    hone_mutex_init(&store->mutex);
    store->watch = (hone_fork_watch){.before = before_fork, .in_child = in_child, .ctx = store};
    hone_fork_watch_begin(&store->watch);
    return HONE_OK;
}

hone_status hone_store_open_with(const hone_store_options *given, const char *url, hone_store **out, hone_error *err)
{
    hone_store_options options = {0};
    hone_store *store = NULL;
    if (out == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, "store.open", "out is NULL: give it an address");
    *out = NULL;
    hone_status status = given == NULL ? HONE_OK
                                       : hone_struct_copy(
                                             &options, sizeof options, given, given->struct_size, "hone_store_options",
                                             "store.open", err);
    if (status != HONE_OK) return status;
    if (url == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "store.open", "url is NULL: write sqlite:PATH or memory:");
    const hone_allocator allocator = options.allocator.reallocate == NULL ? hone_allocator_system() : options.allocator;
    const hone_log log = {options.log, options.log_ctx, HONE_LOG_DEBUG};
    const store_kind *kind = find_kind(url);
    status = check_kind(url, kind, err);
    if (status == HONE_OK) status = open_kind(kind, &allocator, &log, url, options.read_only, &store, err);
    if (status == HONE_OK) status = finish_open(store, url, err);
    if (status == HONE_OK) *out = store;
    return status;
}

hone_status hone_store_open(hone_allocator allocator, const char *url, hone_store **out, hone_error *err)
{
    const hone_store_options options = {.struct_size = sizeof options, .allocator = allocator};
    return hone_store_open_with(&options, url, out, err);
}

void hone_store_close(hone_store **store)
{
    if (store == NULL || *store == NULL) return;
    hone_store *closing = *store;
    *store = NULL;
    hone_fork_watch_end(&closing->watch);
    hone_mutex_deinit(&closing->mutex);
    hone_free(&closing->allocator, closing->url);
    if (!closing->is_lost) closing->ops->close(closing); // else what it has open is the parent's
}

const char *hone_store_url(const hone_store *store)
{
    return store == NULL ? "" : store->url;
}
