#include "store/mirror.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/hash.h"
#include "os/os.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096, MARK_SIZE = 64, COPY_SIZE = MARK_SIZE + 32 };

static const char where[] = "store.mirror";
// How long a server that is away is not asked again: at first, and at most.
static const uint64_t first_pause_ns = UINT64_C(1000000000), most_pause_ns = UINT64_C(30000000000);
static const double note_seconds = 60; // between notes of when the server was seen
// Of foreign configs in the two files, and on the server.
static const char seen_scheme[] = "hone.seen", sent_scheme[] = "hone.sent.", sending[] = "sending ";

typedef struct mirror {
    hone_store base;
    hone_store_options options;
    hone_store *server;                   // NULL: it was not reached yet
    hone_store *copy, *unsent;            // NULL: there is none
    bool away, refused, told, has_unsent; // refused: it is there, and refuses who asks
    bool holds, said_held;                // it is there, and follows another one: what is put is held back
    uint64_t again_ns, pause_ns;          // while it is away
    double seen, noted;                   // when the server answered last; as the copy says
    uint64_t changes;                     // of here: how often the server went and came
    char why[300];
    hone_store *within; // of the transaction that is under way
    int depth;
} mirror;

extern const hone_store_ops mirror_ops;

static mirror *mirror_of(hone_store *store)
{
    return (mirror *)store;
}

// Going and coming ----------------------------------------------------------------------------------------------------

static hone_status enter(mirror *m, hone_store *store, hone_error *err)
{
    return m->depth > 0 ? HONE_OK : hone_store_lock(store, where, err);
}

static hone_status leave(mirror *m, hone_store *store, hone_status status)
{
    return m->depth > 0 ? status : hone_store_unlock(store, status);
}

static void put_seen(mirror *m, double now)
{
    char time[24], text[40];
    hone_os_format_utc(now, time);
    snprintf(text, sizeof text, "\"%s\"", time);
    const hone_store_foreign mark = {.scheme = seen_scheme, .operation = "server", .foreign_key = "seen", .text = text};
    m->noted = now;
    if (m->copy != NULL) (void)!hone_store_put_foreign(m->copy, &mark, 1, NULL);
}

static void note_seen(mirror *m)
{
    m->seen = hone_os_now_utc();
    if (m->seen - m->noted > note_seconds || m->seen < m->noted) put_seen(m, m->seen);
}

static bool take_seen(void *ctx, const hone_store_record *record)
{
    const char *text = record->foreign->text + 1;
    snprintf(ctx, MARK_SIZE, "%.*s", (int)strcspn(text, "\""), text);
    return true;
}

// The copy, with when it was made, as it says itself.
static const char *copy_words(mirror *m, char out[COPY_SIZE])
{
    const hone_store_key mark = {.version = seen_scheme, .algorithm = "server", .key = "seen"};
    char time[MARK_SIZE] = "";
    if (m->copy != NULL) (void)!hone_store_get(m->copy, HONE_RECORD_FOREIGN, &mark, HONE_WARM, take_seen, time, NULL);
    snprintf(out, COPY_SIZE, "%s%s", time[0] != '\0' ? "its copy of " : "its copy, which is empty", time);
    return out;
}

static const char *going(const mirror *m)
{
    return m->refused ? "refuses this program" : "is away";
}

static void note_away(mirror *m, const hone_error *why)
{
    char words[COPY_SIZE];
    m->pause_ns = !m->away ? first_pause_ns : m->pause_ns * 2 < most_pause_ns ? m->pause_ns * 2 : most_pause_ns;
    m->again_ns = hone_os_now_ns() + m->pause_ns;
    if (why != NULL) snprintf(m->why, sizeof m->why, "%.280s", why->message);
    if (why != NULL) m->refused = why->system_code == HONE_STORE_REFUSED;
    if (!m->away) m->changes++;
    m->away = true;
    if (m->told) return;
    m->told = true;
    if (m->seen > 0) put_seen(m, m->seen);
    hone_log_write(
        &m->base.log, HONE_LOG_WARNING,
        "the store's server %s: going on with %s; what is decided meanwhile is sent later: %s", going(m),
        copy_words(m, words), m->why);
}

static hone_status send_all(mirror *m);

static bool follows(const mirror *m)
{
    return m->server != NULL && m->server->ops->follows != NULL && m->server->ops->follows(m->server);
}

// What is put is kept, and what is asked for is the server's. It is sent when the server follows no other any more.
static bool keeps(mirror *m)
{
    if (m->depth > 0 || m->unsent == NULL || !follows(m)) return false;
    if (!m->said_held)
        hone_log_write(
            &m->base.log, HONE_LOG_WARNING,
            "the store's server follows another one, and takes nothing: what is decided here is kept, and sent when it "
            "takes it");
    return m->holds = m->said_held = true;
}

// Returns false: the server is away.
static bool send_held(mirror *m)
{
    if (follows(m)) {
        m->holds = true;
        return true;
    }
    m->holds = false;
    return send_all(m) != HONE_UNAVAILABLE;
}

// The server, where it can be asked now.
static hone_store *reach(mirror *m)
{
    hone_error why = {.message = ""};
    hone_assert(m->depth == 0);
    if (!m->away && m->server != NULL) return !m->holds || send_held(m) ? m->server : NULL;
    if (m->away && hone_os_now_ns() < m->again_ns) return NULL;
    uint64_t changes = 0;
    hone_status status = m->server == NULL ? hone_store_open_with(&m->options, m->base.url, &m->server, &why)
                                           : hone_store_changes(m->server, &changes, &why);
    if (status != HONE_OK) {
        note_away(m, &why);
        return NULL;
    }
    // One that answers and takes nothing, since its disk is full, is away still.
    if (m->has_unsent && !send_held(m)) return NULL;
    if (m->away) {
        m->changes++;
        if (m->told) hone_log_write(&m->base.log, HONE_LOG_INFO, "the store's server is back");
    }
    m->away = m->told = false;
    note_seen(m);
    return m->server;
}

static bool goes_away(mirror *m, hone_status status, const hone_error *why)
{
    if (status != HONE_UNAVAILABLE) return false;
    note_away(m, why);
    return true;
}

static hone_status fail_away(const mirror *m, hone_error *err)
{
    (void)!hone_fail(err, HONE_UNAVAILABLE, where, "the store's server %s: %s", going(m), m->why);
    if (err != NULL && m->refused) err->system_code = HONE_STORE_REFUSED;
    return HONE_UNAVAILABLE;
}

static hone_status pass_on(hone_error *err, hone_status status, const hone_error *why)
{
    if (status != HONE_OK && err != NULL) *err = *why;
    return status;
}

// Runs an expression of `to`, a store whose lock is taken for it, on the server; *status_ UNAVAILABLE: it is away now.
#define ASK(m, status_, why, expression)                                                                               \
    do {                                                                                                               \
        hone_store *to = (m)->depth > 0 ? (m)->within : reach(m);                                                      \
        (status_) = HONE_UNAVAILABLE;                                                                                  \
        if (to == NULL) break;                                                                                         \
        (status_) = enter(m, to, &(why));                                                                              \
        if ((status_) == HONE_OK) (status_) = leave(m, to, expression);                                                \
        if ((m)->depth > 0) break;                                                                                     \
        if (!goes_away(m, status_, &(why))) (m)->seen = hone_os_now_utc();                                             \
    } while (0)

// The same of one of the files, outside of transactions.
#define ASK_FILE(file, status_, err, expression)                                                                       \
    do {                                                                                                               \
        hone_store *to = (file);                                                                                       \
        (status_) = HONE_NOT_FOUND;                                                                                    \
        if (to == NULL) break;                                                                                         \
        (status_) = hone_store_lock(to, where, err);                                                                   \
        if ((status_) == HONE_OK) (status_) = hone_store_unlock(to, expression);                                       \
    } while (0)

// A put that the server cannot take now.
#define KEEP(m, status_, err, expression)                                                                              \
    do {                                                                                                               \
        if ((m)->unsent == NULL) return fail_away(m, err);                                                             \
        (m)->has_unsent = true;                                                                                        \
        ASK_FILE((m)->unsent, status_, err, expression);                                                               \
    } while (0)

// Sending -------------------------------------------------------------------------------------------------------------

typedef struct sent {
    mirror *m;
    hone_store *server;
    const char *mark; // of the counts that are under way
    hone_store_key *keys;
    size_t count, capacity, counts;
    bool known; // the server has these counts already
    hone_status status;
    hone_error *err;
} sent;

static const char *copy_text(sent *s, const char *text)
{
    char *copied = text == NULL ? NULL : hone_copy_text(&s->m->base.allocator, text, strlen(text));
    if (text != NULL && copied == NULL) s->status = HONE_OUT_OF_MEMORY;
    return copied;
}

static void note_key(sent *s, const hone_store_key *key)
{
    if (!hone_grow(&s->m->base.allocator, &s->keys, &s->capacity, s->count + 1, sizeof *s->keys)) {
        s->status = HONE_OUT_OF_MEMORY;
        return;
    }
    s->keys[s->count++] = (hone_store_key){
        copy_text(s, key->device), copy_text(s, key->algorithm), copy_text(s, key->version), copy_text(s, key->key),
        NULL};
}

static void free_keys(sent *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const hone_store_key *key = &s->keys[i];
        const char *const texts[] = {key->device, key->algorithm, key->version, key->key};
        for (size_t j = 0; j < sizeof texts / sizeof *texts; j++)
            hone_free(&s->m->base.allocator, (char *)(uintptr_t)texts[j]);
    }
    hone_free(&s->m->base.allocator, s->keys);
    s->keys = NULL;
    s->count = s->capacity = 0;
}

static bool send_decision(void *ctx, const hone_store_decision *decision)
{
    sent *s = ctx;
    hone_merger merger;
    s->status = hone_merger_init(&merger, &s->m->base.allocator, 1, s->err);
    if (s->status != HONE_OK) return false;
    s->status = s->server->ops->put_all(s->server, decision, 1, &merger, s->err);
    hone_merger_deinit(&merger);
    if (s->status == HONE_OK) note_key(s, &decision->key);
    return s->status == HONE_OK;
}

static bool send_measured(void *ctx, const hone_store_measured *measured)
{
    sent *s = ctx;
    s->status = s->server->ops->put_measurement(s->server, &measured->key, &measured->measurement, s->err);
    if (s->status == HONE_OK) note_key(s, &measured->key);
    return s->status == HONE_OK;
}

static bool send_alias(void *ctx, const hone_store_alias *alias)
{
    sent *s = ctx;
    s->status = s->server->ops->put_alias(s->server, alias, s->err);
    return s->status == HONE_OK;
}

static bool send_foreign(void *ctx, const hone_store_foreign *foreign)
{
    sent *s = ctx;
    s->status = s->server->ops->put_foreigns(s->server, foreign, 1, s->err);
    return s->status == HONE_OK;
}

// "sending MARK DEVICE"; NULL: a count that is not under way.
static const char *device_under_way(const char *device)
{
    if (strncmp(device, sending, strlen(sending)) != 0) return NULL;
    const char *space = strchr(device + strlen(sending), ' ');
    return space != NULL ? space + 1 : NULL;
}

static bool send_count(void *ctx, const hone_store_invocation *invocation)
{
    sent *s = ctx;
    hone_store_invocation one = *invocation;
    one.key.device = device_under_way(invocation->key.device);
    if (one.key.device == NULL) return true;
    s->counts++;
    if (!s->known) s->status = s->server->ops->add_invocations(s->server, &one, 1, s->err);
    return s->status == HONE_OK;
}

static void found(void *ctx, const hone_store_foreign *mark)
{
    (void)mark;
    *(bool *)ctx = true;
}

static hone_store_foreign mark_of(const char *scheme)
{
    return (hone_store_foreign){.scheme = scheme, .operation = "counts", .foreign_key = "sent", .text = "true"};
}

static hone_status send_within(hone_store *server, void *ctx, hone_error *err)
{
    static const hone_store_key all = {0};
    sent *s = ctx;
    hone_store *from = s->m->unsent;
    const hone_store_foreign mark = mark_of(s->mark);
    free_keys(s);
    s->counts = 0;
    s->known = false;
    s->status = HONE_OK;
    s->server = server;
    s->err = err;
    hone_status status = server->ops->get_foreign(server, &mark, found, &s->known, err);
    if (status == HONE_NOT_FOUND) status = HONE_OK;
    if (status == HONE_OK) status = from->ops->scan(from, &all, send_decision, s, err);
    if (status == HONE_OK && s->status == HONE_OK) status = from->ops->measurements(from, &all, send_measured, s, err);
    if (status == HONE_OK && s->status == HONE_OK) status = from->ops->aliases(from, NULL, send_alias, s, err);
    if (status == HONE_OK && s->status == HONE_OK) status = from->ops->foreigns(from, NULL, send_foreign, s, err);
    if (status == HONE_OK && s->status == HONE_OK) status = from->ops->invocations(from, &all, send_count, s, err);
    if (status == HONE_OK) status = s->status;
    if (status == HONE_OK && s->counts > 0 && !s->known) status = server->ops->put_foreigns(server, &mark, 1, err);
    return status;
}

typedef struct counts {
    mirror *m;
    const char *mark; // of those that are to go under way
    hone_store_invocation *moved;
    size_t count, capacity;
    char found[MARK_SIZE]; // of those that are under way since before
    bool failed;
} counts;

static bool look_at_count(void *ctx, const hone_store_invocation *invocation)
{
    counts *c = ctx;
    const char *device = device_under_way(invocation->key.device);
    if (device != NULL) {
        const char *mark = invocation->key.device + strlen(sending);
        snprintf(c->found, sizeof c->found, "%.*s", (int)strcspn(mark, " "), mark);
    }
    return true;
}

static bool move_count(void *ctx, const hone_store_invocation *invocation)
{
    counts *c = ctx;
    const hone_allocator *allocator = &c->m->base.allocator;
    const hone_store_key *key = &invocation->key;
    if (!hone_grow(allocator, &c->moved, &c->capacity, c->count + 1, sizeof *c->moved)) return !(c->failed = true);
    hone_store_invocation one = *invocation;
    char *device = hone_alloc(allocator, strlen(key->device) + MARK_SIZE + sizeof sending);
    if (device == NULL) return !(c->failed = true);
    sprintf(device, "%s%s %s", sending, c->mark, key->device);
    sent texts = {.m = c->m};
    one.key = (hone_store_key){
        device, copy_text(&texts, key->algorithm), copy_text(&texts, key->version), copy_text(&texts, key->key),
        copy_text(&texts, key->spec)};
    one.call = copy_text(&texts, invocation->call);
    one.kernel = copy_text(&texts, invocation->kernel);
    one.decided = copy_text(&texts, invocation->decided);
    c->failed = texts.status != HONE_OK;
    c->moved[c->count++] = one;
    return !c->failed;
}

static void free_counts(counts *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const hone_store_invocation *one = &c->moved[i];
        const char *const texts[] = {one->key.device, one->key.algorithm, one->key.version, one->key.key,
                                     one->key.spec,   one->call,          one->kernel,      one->decided};
        for (size_t j = 0; j < sizeof texts / sizeof *texts; j++)
            hone_free(&c->m->base.allocator, (char *)(uintptr_t)texts[j]);
    }
    hone_free(&c->m->base.allocator, c->moved);
}

// In one transaction of the file: what was counted goes under way, under a mark that the server will know it by. Where
// some are under way already, these come first.
static hone_status put_under_way(hone_store *unsent, void *ctx, hone_error *err)
{
    static const hone_store_key all = {0};
    counts *c = ctx;
    hone_status status = unsent->ops->invocations(unsent, &all, look_at_count, c, err);
    if (status != HONE_OK || c->found[0] != '\0') return status;
    status = unsent->ops->invocations(unsent, &all, move_count, c, err);
    if (status == HONE_OK && c->failed) status = hone_fail_memory(err, where);
    if (status == HONE_OK && c->count > 0) status = unsent->ops->clear_invocations(unsent, NULL, err);
    if (status == HONE_OK && c->count > 0) status = unsent->ops->add_invocations(unsent, c->moved, c->count, err);
    return status;
}

typedef struct forgetting {
    mirror *m;
    char device[PATH_SIZE];
} forgetting;

static bool find_under_way(void *ctx, const hone_store_invocation *invocation)
{
    forgetting *f = ctx;
    if (device_under_way(invocation->key.device) == NULL) return true;
    snprintf(f->device, sizeof f->device, "%s", invocation->key.device);
    return false;
}

static bool find_foreign(void *ctx, const hone_store_foreign *foreign)
{
    snprintf(((forgetting *)ctx)->device, PATH_SIZE, "%s", foreign->scheme);
    return false;
}

// What was sent goes. Aliases stay: to send one twice changes nothing.
static hone_status forget_sent(hone_store *unsent, const sent *s, hone_error *err)
{
    static const hone_store_key all = {0};
    hone_status status = HONE_OK;
    forgetting f = {.m = s->m};
    for (size_t i = 0; i < s->count && status == HONE_OK; i++) {
        status = unsent->ops->remove(unsent, &s->keys[i], err);
        if (status == HONE_NOT_FOUND) status = HONE_OK;
    }
    while (status == HONE_OK) {
        f.device[0] = '\0';
        status = unsent->ops->invocations(unsent, &all, find_under_way, &f, err);
        if (status != HONE_OK || f.device[0] == '\0') break;
        status = unsent->ops->clear_invocations(unsent, f.device, err);
    }
    while (status == HONE_OK) {
        f.device[0] = '\0';
        status = unsent->ops->foreigns(unsent, NULL, find_foreign, &f, err);
        if (status != HONE_OK || f.device[0] == '\0') break;
        status = unsent->ops->clear_foreigns(unsent, f.device, err);
    }
    return status;
}

// Nobody puts into the file meanwhile.
static hone_status send_locked(hone_store *unsent, void *ctx, hone_error *err)
{
    sent *s = ctx;
    hone_status status = hone_store_transact(s->m->server, send_within, s, err);
    return status == HONE_OK ? forget_sent(unsent, s, err) : status;
}

// HONE_UNAVAILABLE: the server is away.
static hone_status send_all(mirror *m)
{
    char random[MARK_SIZE], scheme[MARK_SIZE + sizeof sent_scheme];
    hone_error why = {.message = ""};
    snprintf(random, sizeof random, "%016llx", (unsigned long long)hone_os_random_seed());
    counts c = {.m = m, .mark = random};
    sent s = {.m = m, .mark = scheme};
    hone_status status = hone_store_transact(m->unsent, put_under_way, &c, &why);
    snprintf(scheme, sizeof scheme, "%s%s", sent_scheme, c.found[0] != '\0' ? c.found : random);
    free_counts(&c);
    if (status == HONE_OK) status = hone_store_transact(m->unsent, send_locked, &s, &why);
    if (status == HONE_OK && s.counts > 0) (void)!hone_store_clear_foreigns(m->server, scheme, NULL);
    if (status == HONE_OK) {
        m->has_unsent = c.found[0] != '\0'; // what was counted since is sent the next time
        if (s.count + s.counts > 0)
            hone_log_write(
                &m->base.log, HONE_LOG_INFO, "sent what was decided while the store's server was away: %zu records",
                s.count + s.counts);
    } else if (!goes_away(m, status, &why))
        hone_log_write(
            &m->base.log, HONE_LOG_WARNING, "what was decided while the store's server was away was not sent yet: %s",
            why.message);
    free_keys(&s);
    return status;
}

// Decisions -----------------------------------------------------------------------------------------------------------

typedef struct copying {
    mirror *m;
    void (*visit)(void *ctx, const hone_store_decision *decision);
    void *ctx;
    const hone_store_decision *decision;
    bool same;
} copying;

static bool is_text(const char *a, const char *b)
{
    return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

static bool compare(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *copied = record->decision;
    copying *c = ctx;
    const hone_store_decision *d = c->decision;
    c->same = is_text(d->kernel, copied->kernel) && is_text(d->config, copied->config) &&
              is_text(d->evidence, copied->evidence) && is_text(d->revision, copied->revision) &&
              is_text(d->environment, copied->environment) && d->verified == copied->verified;
    return true;
}

static void copy_decision(copying *c, const hone_store_decision *decision)
{
    c->decision = decision;
    c->same = false;
    if (c->m->copy == NULL) return;
    if (hone_store_get(c->m->copy, HONE_RECORD_DECISION, &decision->key, decision->regime, compare, c, NULL) ==
            HONE_OK &&
        c->same)
        return;
    (void)!hone_store_put(c->m->copy, decision, NULL);
}

static void copy_and_visit(void *ctx, const hone_store_decision *decision)
{
    copying *c = ctx;
    copy_decision(c, decision);
    c->visit(c->ctx, decision);
}

static bool visit_held(void *ctx, const hone_store_record *record)
{
    copying *c = ctx;
    c->visit(c->ctx, record->decision);
    return true;
}

static bool see(void *ctx, const hone_store_record *record)
{
    (void)record;
    *(bool *)ctx = true;
    return true;
}

static hone_status mirror_get(
    hone_store *store,
    const hone_store_key *key,
    hone_regime regime,
    void (*visit)(void *ctx, const hone_store_decision *decision),
    void *ctx,
    hone_error *err)
{
    mirror *m = mirror_of(store);
    copying c = {.m = m, .visit = visit, .ctx = ctx};
    hone_error why = {.message = ""};
    hone_status status;
    bool copied = false;
    ASK(m, status, why, to->ops->get(to, key, regime, copy_and_visit, &c, &why));
    // What is held back the server does not have.
    if (status == HONE_NOT_FOUND && m->holds && m->depth == 0 &&
        hone_store_get(m->unsent, HONE_RECORD_DECISION, key, regime, visit_held, &c, NULL) == HONE_OK)
        return HONE_OK;
    if (m->depth > 0 || status != HONE_UNAVAILABLE) {
        // What was taken away there goes here.
        if (status == HONE_NOT_FOUND && m->copy != NULL && m->depth == 0 &&
            hone_store_get(m->copy, HONE_RECORD_DECISION, key, regime, see, &copied, NULL) == HONE_OK)
            (void)!hone_store_remove(m->copy, key, NULL);
        return pass_on(err, status, &why);
    }
    ASK_FILE(m->unsent, status, err, to->ops->get(to, key, regime, visit, ctx, err));
    if (status == HONE_NOT_FOUND) ASK_FILE(m->copy, status, err, to->ops->get(to, key, regime, visit, ctx, err));
    if (status == HONE_NOT_FOUND)
        return hone_fail(
            err, HONE_NOT_FOUND, where, "the store's server is away, and its copy has no decision for %s@v%s %s",
            key->algorithm, key->version, key->key);
    return status;
}

static hone_status mirror_put_all(
    hone_store *store, const hone_store_decision *decisions, size_t count, hone_merger *merger, hone_error *err)
{
    mirror *m = mirror_of(store);
    hone_error why = {.message = ""};
    hone_status status;
    if (!keeps(m))
        ASK(m, status, why, to->ops->put_all(to, decisions, count, merger, &why));
    else
        status = HONE_UNAVAILABLE;
    if (m->depth > 0 || status != HONE_UNAVAILABLE) {
        if (status == HONE_OK && merger == NULL && m->copy != NULL && m->depth == 0)
            (void)!hone_store_put_all(m->copy, decisions, count, NULL);
        return pass_on(err, status, &why);
    }
    KEEP(m, status, err, to->ops->put_all(to, decisions, count, merger, err));
    return status;
}

static hone_status mirror_remove(hone_store *store, const hone_store_key *key, hone_error *err)
{
    mirror *m = mirror_of(store);
    hone_error why = {.message = ""};
    hone_status status;
    ASK(m, status, why, to->ops->remove(to, key, &why));
    if (status == HONE_UNAVAILABLE && m->depth == 0) return fail_away(m, err);
    if (m->copy != NULL && m->depth == 0) (void)!hone_store_remove(m->copy, key, NULL);
    return pass_on(err, status, &why);
}

typedef struct scanning {
    mirror *m;
    hone_store_visit_decision *visit;
    void *ctx;
    bool ended;
} scanning;

static bool scan_unsent(void *ctx, const hone_store_decision *decision)
{
    scanning *s = ctx;
    s->ended = !s->visit(s->ctx, decision);
    return !s->ended;
}

static bool scan_copy(void *ctx, const hone_store_decision *decision)
{
    scanning *s = ctx;
    bool newer = false;
    if (s->m->unsent != NULL)
        (void)!hone_store_get(s->m->unsent, HONE_RECORD_DECISION, &decision->key, decision->regime, see, &newer, NULL);
    return newer || s->visit(s->ctx, decision);
}

static hone_status mirror_scan(
    hone_store *store, const hone_store_key *filter, hone_store_visit_decision *visit, void *ctx, hone_error *err)
{
    mirror *m = mirror_of(store);
    scanning s = {m, visit, ctx, false};
    hone_error why = {.message = ""};
    hone_status status;
    ASK(m, status, why, to->ops->scan(to, filter, visit, ctx, &why));
    if (m->depth > 0 || status != HONE_UNAVAILABLE) return pass_on(err, status, &why);
    ASK_FILE(m->unsent, status, err, to->ops->scan(to, filter, scan_unsent, &s, err));
    if ((status == HONE_OK || status == HONE_NOT_FOUND) && !s.ended)
        ASK_FILE(m->copy, status, err, to->ops->scan(to, filter, scan_copy, &s, err));
    return status == HONE_NOT_FOUND ? fail_away(m, err) : status;
}

// Other records -------------------------------------------------------------------------------------------------------

// What is read of the server, and while it is away of the second file alone.
#define READ(m, err, of_server, of_file)                                                                               \
    do {                                                                                                               \
        hone_error why = {.message = ""};                                                                              \
        hone_status status;                                                                                            \
        ASK(m, status, why, of_server);                                                                                \
        if ((m)->depth > 0 || status != HONE_UNAVAILABLE) return pass_on(err, status, &why);                           \
        if ((m)->unsent == NULL) return fail_away(m, err);                                                             \
        ASK_FILE((m)->unsent, status, err, of_file);                                                                   \
        return status;                                                                                                 \
    } while (0)

// What is put on the server, and while it is away into the second file.
#define WRITE(m, err, of_server, of_file)                                                                              \
    do {                                                                                                               \
        hone_error why = {.message = ""};                                                                              \
        hone_status status = HONE_UNAVAILABLE;                                                                         \
        if (!keeps(m)) ASK(m, status, why, of_server);                                                                 \
        if ((m)->depth > 0 || status != HONE_UNAVAILABLE) return pass_on(err, status, &why);                           \
        KEEP(m, status, err, of_file);                                                                                 \
        return status;                                                                                                 \
    } while (0)

// What only the server can do.
#define ONLY(m, err, of_server)                                                                                        \
    do {                                                                                                               \
        hone_error why = {.message = ""};                                                                              \
        hone_status status;                                                                                            \
        ASK(m, status, why, of_server);                                                                                \
        if ((m)->depth == 0 && status == HONE_UNAVAILABLE) return fail_away(m, err);                                   \
        return pass_on(err, status, &why);                                                                             \
    } while (0)

static hone_status mirror_put_measurement(
    hone_store *store, const hone_store_key *key, const hone_store_measurement *measurement, hone_error *err)
{
    mirror *m = mirror_of(store);
    WRITE(
        m, err, to->ops->put_measurement(to, key, measurement, &why),
        to->ops->put_measurement(to, key, measurement, err));
}

static hone_status mirror_measurements(
    hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err)
{
    mirror *m = mirror_of(store);
    READ(
        m, err, to->ops->measurements(to, filter, visit, ctx, &why),
        to->ops->measurements(to, filter, visit, ctx, err));
}

static hone_status mirror_failures(
    hone_store *store, const hone_store_key *filter, hone_store_visit_measured *visit, void *ctx, hone_error *err)
{
    mirror *m = mirror_of(store);
    READ(m, err, to->ops->failures(to, filter, visit, ctx, &why), to->ops->failures(to, filter, visit, ctx, err));
}

static hone_status mirror_add_invocations(
    hone_store *store, const hone_store_invocation *invocations, size_t count, hone_error *err)
{
    mirror *m = mirror_of(store);
    WRITE(
        m, err, to->ops->add_invocations(to, invocations, count, &why),
        to->ops->add_invocations(to, invocations, count, err));
}

static hone_status mirror_invocations(
    hone_store *store, const hone_store_key *filter, hone_store_visit_invocation *visit, void *ctx, hone_error *err)
{
    mirror *m = mirror_of(store);
    READ(m, err, to->ops->invocations(to, filter, visit, ctx, &why), to->ops->invocations(to, filter, visit, ctx, err));
}

static hone_status mirror_clear_invocations(hone_store *store, const char *device, hone_error *err)
{
    mirror *m = mirror_of(store);
    ONLY(m, err, to->ops->clear_invocations(to, device, &why));
}

static hone_status mirror_expire_misses(hone_store *store, int64_t before, size_t most, hone_error *err)
{
    mirror *m = mirror_of(store);
    READ(m, err, to->ops->expire_misses(to, before, most, &why), to->ops->expire_misses(to, before, most, err));
}

static hone_status mirror_put_alias(hone_store *store, const hone_store_alias *alias, hone_error *err)
{
    mirror *m = mirror_of(store);
    WRITE(m, err, to->ops->put_alias(to, alias, &why), to->ops->put_alias(to, alias, err));
}

static hone_status mirror_get_alias(
    hone_store *store,
    const char *scheme,
    const char *operation,
    const char *foreign_key,
    void (*visit)(void *ctx, const hone_store_alias *alias),
    void *ctx,
    hone_error *err)
{
    mirror *m = mirror_of(store);
    READ(
        m, err, to->ops->get_alias(to, scheme, operation, foreign_key, visit, ctx, &why),
        to->ops->get_alias(to, scheme, operation, foreign_key, visit, ctx, err));
}

static hone_status mirror_aliases(
    hone_store *store, const char *scheme, hone_store_visit_alias *visit, void *ctx, hone_error *err)
{
    mirror *m = mirror_of(store);
    READ(m, err, to->ops->aliases(to, scheme, visit, ctx, &why), to->ops->aliases(to, scheme, visit, ctx, err));
}

static hone_status mirror_put_foreigns(
    hone_store *store, const hone_store_foreign *foreigns, size_t count, hone_error *err)
{
    mirror *m = mirror_of(store);
    WRITE(m, err, to->ops->put_foreigns(to, foreigns, count, &why), to->ops->put_foreigns(to, foreigns, count, err));
}

static hone_status mirror_get_foreign(
    hone_store *store,
    const hone_store_foreign *key,
    void (*visit)(void *ctx, const hone_store_foreign *foreign),
    void *ctx,
    hone_error *err)
{
    mirror *m = mirror_of(store);
    READ(m, err, to->ops->get_foreign(to, key, visit, ctx, &why), to->ops->get_foreign(to, key, visit, ctx, err));
}

static hone_status mirror_foreigns(
    hone_store *store, const char *scheme, hone_store_visit_foreign *visit, void *ctx, hone_error *err)
{
    mirror *m = mirror_of(store);
    READ(m, err, to->ops->foreigns(to, scheme, visit, ctx, &why), to->ops->foreigns(to, scheme, visit, ctx, err));
}

static hone_status mirror_clear_foreigns(hone_store *store, const char *scheme, hone_error *err)
{
    mirror *m = mirror_of(store);
    ONLY(m, err, to->ops->clear_foreigns(to, scheme, &why));
}

static hone_status mirror_set_aside(
    hone_store *store, const hone_store_key *key, hone_regime regime, const char *reason, hone_error *err)
{
    mirror *m = mirror_of(store);
    if (m->copy != NULL && m->depth == 0) (void)!hone_store_set_aside(m->copy, key, regime, reason, NULL);
    ONLY(m, err, to->ops->set_aside(to, key, regime, reason, &why));
}

static hone_status mirror_quarantine(hone_store *store, hone_store_visit_quarantined *visit, void *ctx, hone_error *err)
{
    mirror *m = mirror_of(store);
    ONLY(m, err, to->ops->quarantine(to, visit, ctx, &why));
}

static hone_status mirror_clear_quarantine(hone_store *store, hone_error *err)
{
    mirror *m = mirror_of(store);
    ONLY(m, err, to->ops->clear_quarantine(to, &why));
}

static hone_status mirror_verify(hone_store *store, hone_store_health *out, hone_error *err)
{
    mirror *m = mirror_of(store);
    ONLY(m, err, to->ops->verify(to, out, &why));
}

static hone_status mirror_stat(hone_store *store, hone_store_stat *out, hone_error *err)
{
    mirror *m = mirror_of(store);
    ONLY(m, err, to->ops->stat(to, out, &why));
}

// Transactions --------------------------------------------------------------------------------------------------------

static hone_status mirror_begin(hone_store *store, hone_error *err)
{
    mirror *m = mirror_of(store);
    hone_error why = {.message = ""};
    hone_status status = HONE_OK;
    if (m->depth++ > 0) return HONE_OK;
    m->depth = 0;
    hone_store *server = reach(m);
    if (server != NULL && keeps(m)) server = NULL;
    m->within = server != NULL ? server : m->unsent;
    if (m->within == NULL) return fail_away(m, err);
    status = hone_store_lock(m->within, where, err);
    if (status != HONE_OK) return status;
    status = m->within->ops->begin(m->within, &why);
    if (server != NULL && goes_away(m, status, &why) && m->unsent != NULL) {
        (void)!hone_store_unlock(m->within, status);
        m->within = m->unsent;
        status = hone_store_lock(m->within, where, &why);
        if (status == HONE_OK) status = m->within->ops->begin(m->within, &why);
    }
    m->has_unsent = m->has_unsent || m->within == m->unsent;
    if (status == HONE_OK)
        m->depth = 1;
    else
        (void)!hone_store_unlock(m->within, status);
    return pass_on(err, status, &why);
}

static hone_status mirror_end(hone_store *store, hone_status status, hone_error *err)
{
    mirror *m = mirror_of(store);
    if (--m->depth > 0) return status;
    hone_error why = err != NULL ? *err : (hone_error){.message = ""};
    status = hone_store_unlock(m->within, m->within->ops->end(m->within, status, &why));
    if (m->within == m->server) (void)goes_away(m, status, &why);
    return pass_on(err, status, &why);
}

// What is no record ---------------------------------------------------------------------------------------------------

// Without the store's lock: what is looked at is never closed before the store. A server that went just now is told of by
// the next that asks it.
static hone_status mirror_lease(
    hone_store *store, uint64_t name, const hone_wait *wait, hone_lease *out, hone_error *err)
{
    mirror *m = mirror_of(store);
    hone_error why = {.message = ""};
    hone_status status = hone_store_lock(store, where, err);
    if (status != HONE_OK) return status;
    hone_store *server = m->depth == 0 ? reach(m) : m->within;
    (void)!hone_store_unlock(store, HONE_OK);
    if (server != NULL) {
        status = hone_store_lease(server, name, wait, out, &why);
        if (status != HONE_UNAVAILABLE) return pass_on(err, status, &why);
    }
    if (m->copy == NULL) return fail_away(m, err);
    return hone_store_lease(m->copy, name, wait, out, err);
}

static hone_status mirror_changes(hone_store *store, uint64_t *out, hone_error *err)
{
    mirror *m = mirror_of(store);
    hone_error why = {.message = ""};
    hone_status status;
    uint64_t changes = 0;
    (void)err;
    ASK(m, status, why, to->ops->changes(to, &changes, &why));
    if (status != HONE_OK) changes = 0;
    *out = changes ^ m->changes << 40;
    return HONE_OK;
}

// The queue -----------------------------------------------------------------------------------------------------------

static hone_status mirror_queue_add(
    hone_store *store, const hone_job *jobs, size_t count, size_t *out_added, hone_error *err)
{
    mirror *m = mirror_of(store);
    ONLY(m, err, to->ops->queue->add(to, jobs, count, out_added, &why));
}

static hone_status mirror_queue_change(
    hone_store *store, const hone_store_key *key, hone_job_change *change, hone_error *err)
{
    mirror *m = mirror_of(store);
    ONLY(m, err, to->ops->queue->change(to, key, change, &why));
}

static hone_status mirror_queue_visit(
    hone_store *store,
    const char *device,
    hone_job_state state,
    bool orphans,
    size_t limit,
    hone_store_visit_job *visit,
    void *ctx,
    hone_error *err)
{
    mirror *m = mirror_of(store);
    ONLY(m, err, to->ops->queue->visit(to, device, state, orphans, limit, visit, ctx, &why));
}

static hone_status mirror_queue_clear(hone_store *store, const char *device, uint64_t *out_removed, hone_error *err)
{
    mirror *m = mirror_of(store);
    ONLY(m, err, to->ops->queue->clear(to, device, out_removed, &why));
}

static hone_status mirror_queue_count(hone_store *store, const char *device, uint64_t out[3], hone_error *err)
{
    mirror *m = mirror_of(store);
    ONLY(m, err, to->ops->queue->count(to, device, out, &why));
}

static hone_status mirror_queue_look(
    hone_store *store,
    const char *const *devices,
    size_t count,
    bool orphans,
    size_t limit,
    hone_store_visit_job *visit,
    void *ctx,
    hone_error *err)
{
    mirror *m = mirror_of(store);
    ONLY(m, err, to->ops->queue->look(to, devices, count, orphans, limit, visit, ctx, &why));
}

// Kinds on a server have all of them.
static const hone_queue_ops mirror_queue = {mirror_queue_add,   mirror_queue_change, mirror_queue_visit,
                                            mirror_queue_clear, mirror_queue_count,  mirror_queue_look};

// Opening -------------------------------------------------------------------------------------------------------------

static void mirror_close(hone_store *store)
{
    mirror *m = mirror_of(store);
    const hone_allocator allocator = store->allocator;
    if (m->seen > m->noted && m->copy != NULL) put_seen(m, m->seen);
    hone_store_close(&m->server);
    hone_store_close(&m->copy);
    hone_store_close(&m->unsent);
    hone_free(&allocator, m);
}

const hone_store_ops mirror_ops = {
    .struct_size = sizeof(hone_store_ops),
    .scheme = "",
    .form = "",
    .close = mirror_close,
    .get = mirror_get,
    .put_all = mirror_put_all,
    .remove = mirror_remove,
    .scan = mirror_scan,
    .put_measurement = mirror_put_measurement,
    .measurements = mirror_measurements,
    .failures = mirror_failures,
    .add_invocations = mirror_add_invocations,
    .invocations = mirror_invocations,
    .clear_invocations = mirror_clear_invocations,
    .expire_misses = mirror_expire_misses,
    .put_alias = mirror_put_alias,
    .get_alias = mirror_get_alias,
    .aliases = mirror_aliases,
    .put_foreigns = mirror_put_foreigns,
    .get_foreign = mirror_get_foreign,
    .foreigns = mirror_foreigns,
    .clear_foreigns = mirror_clear_foreigns,
    .set_aside = mirror_set_aside,
    .quarantine = mirror_quarantine,
    .clear_quarantine = mirror_clear_quarantine,
    .verify = mirror_verify,
    .stat = mirror_stat,
    .begin = mirror_begin,
    .end = mirror_end,
    .lease = mirror_lease,
    .changes = mirror_changes,
    .queue = &mirror_queue,
};

// Two servers' copies do not meet: what the URL means here and now is in the files' names, else its text.
static uint64_t identity_of(const mirror *m)
{
    char identity[PATH_SIZE] = "";
    const hone_store_ops *kind = hone_store_ops_of(m->base.url);
    if (kind->identify != NULL)
        kind->identify(&m->base.allocator, m->base.url + strlen(kind->scheme), identity, sizeof identity);
    const char *text = identity[0] != '\0' ? identity : m->base.url;
    return hone_hash64(text, strlen(text));
}

// A file of something else in a folder of hone's own is moved aside, and another one is begun.
static bool move_aside(mirror *m, const char *url)
{
    char moved[PATH_SIZE];
    const char *path = url + strlen(hone_store_default_scheme());
    const int size =
        snprintf(moved, sizeof moved, "%s.damaged-%016llx", path, (unsigned long long)hone_os_random_seed());
    if (size <= 0 || (size_t)size >= sizeof moved) return false;
    if (hone_os_rename(path, moved, NULL) != HONE_OK) return false;
    hone_log_write(
        &m->base.log, HONE_LOG_WARNING, "%s is not a store of hone; it was moved to %s, and a new one was begun", path,
        moved);
    return true;
}

static hone_store *open_file(mirror *m, const char *folder, const char *name)
{
    char url[PATH_SIZE];
    hone_error why = {.message = ""};
    hone_store *store = NULL;
    const int size = snprintf(
        url, sizeof url, "%s%s/%016llx-%s.db", hone_store_default_scheme(), folder, (unsigned long long)identity_of(m),
        name);
    hone_status status = HONE_INVALID_ARGUMENT;
    if (size > 0 && (size_t)size < sizeof url) status = hone_store_open_with(&m->options, url, &store, &why);
    if (status == HONE_INCOMPATIBLE && why.system_code == HONE_STORE_FOREIGN && move_aside(m, url))
        status = hone_store_open_with(&m->options, url, &store, &why);
    if (status == HONE_OK) return store;
    hone_log_write(
        &m->base.log, HONE_LOG_WARNING, "there is no %s of the store on the server here: %s",
        strcmp(name, "copy") == 0 ? "copy" : "file for what cannot be sent", why.message);
    return NULL;
}

static bool note_any(void *ctx, const hone_store_foreign *foreign)
{
    (void)foreign;
    *(bool *)ctx = true;
    return false;
}

// The counts of a store leave out notes such as a pause, which is to be sent, too.
static bool holds_anything(hone_store *store)
{
    hone_store_stat stat;
    bool any = false;
    if (store == NULL || hone_store_get_stat(store, &stat, NULL) != HONE_OK) return false;
    if (stat.decisions + stat.measurements + stat.failures + stat.invocations + stat.aliases > 0) return true;
    return hone_store_foreigns(store, NULL, note_any, &any, NULL) == HONE_OK && any;
}

hone_status hone_store_open_mirrored(
    const hone_store_options *options, const char *url, const char *folder, hone_store **out, hone_error *err)
{
    const hone_allocator allocator = options->allocator;
    hone_error why = {.message = ""};
    hone_status status = hone_store_check_url(url, err);
    if (status != HONE_OK) return status;
    mirror *m = hone_alloc(&allocator, sizeof *m);
    if (m == NULL) return hone_fail_memory(err, where);
    m->base.ops = &mirror_ops;
    m->base.allocator = allocator;
    m->base.log = (hone_log){options->log, options->log_ctx, HONE_LOG_DEBUG};
    m->options = *options;
    status = hone_store_finish_open(&m->base, url, err);
    if (status != HONE_OK) return status;
    m->copy = open_file(m, folder, "copy");
    m->unsent = open_file(m, folder, "unsent");
    m->has_unsent = holds_anything(m->unsent);
    status = hone_store_open_with(&m->options, url, &m->server, &why);
    hone_store *store = &m->base;
    if (status == HONE_UNAVAILABLE && m->copy != NULL) {
        note_away(m, &why);
    } else if (status != HONE_OK) {
        hone_store_close(&store);
        return pass_on(err, status, &why);
    } else {
        note_seen(m);
        if (m->has_unsent) (void)!send_held(m);
    }
    *out = store;
    return HONE_OK;
}

const char *hone_store_away(hone_store *store, char *out, size_t size)
{
    char words[COPY_SIZE];
    if (out == NULL || size == 0) return "";
    out[0] = '\0';
    if (store == NULL || store->ops != &mirror_ops || hone_store_lock(store, where, NULL) != HONE_OK) return out;
    mirror *m = mirror_of(store);
    if (m->away)
        snprintf(out, size, "the store's server %s, and %s answers: %s", going(m), copy_words(m, words), m->why);
    else if (m->holds)
        snprintf(
            out, size,
            "the store's server follows another one, and takes nothing: what is decided here is kept, and "
            "sent when it takes it");
    (void)!hone_store_unlock(store, HONE_OK);
    return out;
}
