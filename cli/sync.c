// hone sync: a store here and another one, both ways, by the rule of merges.
#include "cli.h"

#include <stdio.h>
#include <string.h>

enum { LOOK_NS = 200 * 1000 * 1000 };
static const uint64_t ask_ns = UINT64_C(1000000000);

typedef struct moved {
    hone_import_report here, there;
} moved;

static size_t taken(const hone_import_report *report)
{
    return report->outcomes[HONE_IMPORT_TAKEN];
}

static size_t moved_at_all(const hone_import_report *report)
{
    return taken(report) + report->measurements + report->outcomes[HONE_IMPORT_FOREIGN];
}

static int sync_once(hone_store *here, hone_store *there, moved *out, hone_error *err)
{
    const hone_import_options options = {.struct_size = sizeof options};
    hone_status status = hone_store_merge_from(here, there, &options, &out->here, err);
    if (status == HONE_OK) status = hone_store_merge_from(there, here, &options, &out->there, err);
    return (int)status;
}

static void tell(const hone_cli *cli, const char *url, const moved *m)
{
    if (cli->options.json)
        cli_print_json(json_pack(
            "{s:{s:I, s:I, s:I}, s:{s:I, s:I, s:I}}", "here", "decisions", (json_int_t)taken(&m->here), "measurements",
            (json_int_t)m->here.measurements, "refused", (json_int_t)m->here.outcomes[HONE_IMPORT_REFUSED], "there",
            "decisions", (json_int_t)taken(&m->there), "measurements", (json_int_t)m->there.measurements, "refused",
            (json_int_t)m->there.outcomes[HONE_IMPORT_REFUSED]));
    else
        cli_say(
            "%zu decision%s and %zu measurement%s came, %zu and %zu went to %s\n", taken(&m->here),
            cli_plural(taken(&m->here)), m->here.measurements, cli_plural(m->here.measurements), taken(&m->there),
            m->there.measurements, url);
    fflush(stdout);
}

// A store that nobody else sees changes by nobody.
static uint64_t changes_of(hone_store *store, uint64_t before)
{
    uint64_t now = before;
    return hone_store_changes(store, &now, NULL) == HONE_OK ? now : before;
}

static void await_change(hone_store *here, hone_store *there, uint64_t seen[2])
{
    const uint64_t now[2] = {seen[0], seen[1]};
    uint64_t look_ns = LOOK_NS;
    while (!cli_is_cancelled()) {
        cli_sleep_ns(look_ns);
        seen[0] = changes_of(here, now[0]);
        seen[1] = changes_of(there, now[1]);
        if (seen[0] != now[0] || seen[1] != now[1]) return;
        look_ns = look_ns < ask_ns ? look_ns + LOOK_NS : ask_ns;
    }
}

// What the two put themselves is a change, too, that moves nothing.
static int watch(const hone_cli *cli, hone_store *here, hone_store *there, const char *url)
{
    uint64_t seen[2] = {changes_of(here, 0), changes_of(there, 0)};
    bool told = false;
    while (!cli_is_cancelled()) {
        moved m;
        hone_error err;
        const int status = sync_once(here, there, &m, &err);
        if (status == HONE_OK && (moved_at_all(&m.here) + moved_at_all(&m.there) > 0 || !told)) tell(cli, url, &m);
        if (status == HONE_UNAVAILABLE || status == HONE_BUSY) {
            if (told) cli_warn("waiting: %s", err.message);
            cli_sleep_ns(ask_ns);
        } else if (status != HONE_OK)
            return cli_fail(&err);
        told = status == HONE_OK;
        if (told) await_change(here, there, seen);
    }
    return EXIT_DONE;
}

int cli_sync(hone_cli *cli)
{
    hone_store *here = NULL, *there = NULL;
    hone_error err;
    moved m;
    const char *url = cli->arguments[0];
    int status = cli_open_store(cli, &here);
    if (status == 0 && strcmp(url, hone_store_url(here)) == 0)
        status = cli_usage("%s is this store itself: name another one", url);
    if (status == 0 && hone_store_open(hone_allocator_system(), url, &there, &err) != HONE_OK) status = cli_fail(&err);
    if (status == 0 && cli->options.watch)
        status = watch(cli, here, there, url);
    else if (status == 0) {
        if (sync_once(here, there, &m, &err) != HONE_OK)
            status = cli_fail(&err);
        else
            tell(cli, url, &m);
    }
    hone_store_close(&there);
    hone_store_close(&here);
    return status;
}
