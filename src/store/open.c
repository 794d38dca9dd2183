// Opening a store by its URL, and closing it.
#include "store/ops.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/structs.h"
#include "os/os.h"

#include <string.h>

static const char where[] = "store.open";

static hone_status fail_unknown(const char *url, hone_error *err)
{
    char forms[512];
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "'%s' is not the URL of a store: write one of %s", url,
        hone_store_forms(false, forms, sizeof forms));
}

hone_status hone_store_check_url(const char *url, hone_error *err)
{
    static const char controls[] =
        "\x01\x02\x03\x04\x05\x06\x07\b\t\n\v\f\r\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18"
        "\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7f";
    enum { URL_LIMIT = 4096 };
    if (strnlen(url, URL_LIMIT + 1) > URL_LIMIT)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "the store's URL is too long, over %d bytes: '%.60s...'", (int)URL_LIMIT,
            url);
    if (strcspn(url, controls) < strlen(url))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "the store's URL has a control character as byte %zu: '%.*s...'",
            strcspn(url, controls), (int)strcspn(url, controls), url);
    return hone_store_ops_of(url) == NULL ? fail_unknown(url, err) : HONE_OK;
}

static hone_status open_kind(
    const hone_allocator *allocator,
    const hone_log *log,
    const char *url,
    bool read_only,
    hone_store **out,
    hone_error *err)
{
    char forms[512];
    const hone_store_ops *kind = hone_store_ops_of(url);
    const char *location = url + strlen(kind->scheme);
    if (!read_only) return kind->open(allocator, log, location, out, err);
    if (kind->open_read_only != NULL) return kind->open_read_only(allocator, log, location, out, err);
    return hone_fail(
        err, HONE_UNSUPPORTED, where, "'%s': only a store %s can be opened for reading alone", url,
        hone_store_forms(true, forms, sizeof forms));
}

// SQLite's connections must not be carried into a child, nor closed there: they are closed before, and opened again by
// both.
static void before_fork(void *ctx)
{
    hone_store *store = ctx;
    const hone_store_ops *ops = store->ops;
    hone_assert(ops->struct_size == sizeof *ops);
    store->in_use = !ops->concurrent && (hone_mutex_is_mine(&store->mutex) || !hone_mutex_try_lock(&store->mutex));
    if (store->in_use) return;
    if (ops->rest != NULL) ops->rest(store);
    store->rests = ops->rest != NULL;
    if (!ops->concurrent) hone_mutex_unlock(&store->mutex);
}

static void in_child(void *ctx)
{
    hone_store *store = ctx;
    store->is_lost = store->is_lost || (store->in_use && store->ops->rest != NULL);
}

hone_status hone_store_finish_open(hone_store *store, const char *url, hone_error *err)
{
    store->url = hone_copy_text(&store->allocator, url, strlen(url));
    if (store->url == NULL) {
        store->ops->close(store);
        return hone_fail_memory(err, where);
    }
    hone_assert(store->ops->wake == NULL || (store->ops->rest != NULL && !store->ops->concurrent));
    hone_assert(store->ops->companions == NULL || store->ops->in_file);
    hone_mutex_init(&store->mutex);
    store->watch = (hone_fork_watch){.before = before_fork, .in_child = in_child, .ctx = store};
    hone_fork_watch_begin(&store->watch);
    return HONE_OK;
}

hone_status hone_store_open_with(const hone_store_options *given, const char *url, hone_store **out, hone_error *err)
{
    hone_store_options options = {0};
    hone_store *store = NULL;
    char forms[512];
    if (out == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "out is NULL: give it an address");
    *out = NULL;
    hone_status status =
        given == NULL
            ? HONE_OK
            : hone_struct_copy(&options, sizeof options, given, given->struct_size, "hone_store_options", where, err);
    if (status != HONE_OK) return status;
    if (url == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "url is NULL: expected one of %s",
            hone_store_forms(false, forms, sizeof forms));
    const hone_allocator allocator = options.allocator.reallocate == NULL ? hone_allocator_system() : options.allocator;
    const hone_log log = {options.log, options.log_ctx, HONE_LOG_DEBUG};
    hone_os_size_signal_hold();
    status = hone_store_check_url(url, err);
    if (status == HONE_OK) status = open_kind(&allocator, &log, url, options.read_only, &store, err);
    if (status == HONE_OK) status = hone_store_finish_open(store, url, err);
    hone_os_size_signal_release();
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
    hone_os_size_signal_hold();
    if (!closing->is_lost) closing->ops->close(closing); // else what it has open is the parent's
    hone_os_size_signal_release();
}

const char *hone_store_url(const hone_store *store)
{
    return store == NULL ? "" : store->url;
}
