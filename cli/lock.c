// hone lock: pins what the store answers with, and says when the two have drifted apart.
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A call that was named, and the keys that its answer may be pinned under.
typedef struct named_call {
    const char *text;
    const hone_op *op;
    hone_call *call;
    const char *device; // that the text names; NULL: any
    json_t *keys;       // an object
    bool found;
} named_call;

typedef struct session {
    hone_cli *cli;
    const char *path;
    json_t *devices;   // fingerprints; NULL: every device
    named_call *calls; // none: every call
    size_t call_count;
    hone_lock *stored;  // what the store answers with, of what was named
    hone_lock *locked;  // what the file has of that
    hone_lock *outside; // what the file has besides
    size_t unverified;
    json_t *left_out;
    hone_regime regimes[HONE_REGIME_COUNT]; // that are served, the first asked for in front
    size_t regime_count;
    json_t *ranks; // an object, for each call of the store the place of what it is answered with in regimes
} session;

// What was named ------------------------------------------------------------------------------------------------------

static bool is_call(
    const named_call *call, const char *algorithm, const char *version, const char *key, const char *device)
{
    return (call->device == NULL || strcmp(call->device, device) == 0) &&
           strcmp(hone_op_name(call->op), algorithm) == 0 &&
           strcmp(hone_signature_version(hone_op_signature(call->op)), version) == 0 &&
           json_object_get(call->keys, key) != NULL;
}

static bool is_named(session *s, const char *algorithm, const char *version, const char *key, const char *device)
{
    if (s->devices != NULL && json_object_get(s->devices, device) == NULL) return false;
    bool named = s->call_count == 0;
    for (size_t i = 0; i < s->call_count; i++) {
        if (!is_call(&s->calls[i], algorithm, version, key, device)) continue;
        s->calls[i].found = named = true;
    }
    return named;
}

static bool note_key(void *ctx, const hone_lookup_key *key)
{
    json_object_set_new(ctx, key->key, json_true());
    return true;
}

static int parse_calls(session *s)
{
    hone_cli *cli = s->cli;
    s->calls = calloc(cli->count + 1, sizeof *s->calls);
    int status = s->calls == NULL ? EXIT_WORLD : 0;
    for (size_t i = 0; i < cli->count && status == 0; i++) {
        named_call *call = &s->calls[s->call_count++];
        hone_error err;
        call->text = cli->arguments[i];
        status = cli_parse_call(cli, call->text, &call->op, &call->call);
        if (status == 0) status = cli_device_in(cli, call->text, call->call, &call->device);
        call->keys = json_object();
        if (status == 0 && hone_call_keys(call->call, note_key, call->keys, &err) != HONE_OK) status = cli_fail(&err);
    }
    return status;
}

// The store -----------------------------------------------------------------------------------------------------------

static void leave_out(session *s, const hone_store_decision *decision, const char *reason)
{
    cli_warn(
        "left out: %s (%s): %s", decision->call == NULL ? decision->key.algorithm : decision->call, decision->key.key,
        reason);
    json_array_append_new(
        s->left_out,
        json_pack(
            "{s:s, s:s, s:s, s:s, s:s}", "algorithm", decision->key.algorithm, "version", decision->key.version, "key",
            decision->key.key, "device", decision->key.device, "reason", reason));
}

static hone_lock_line line_of(const hone_store_decision *decision)
{
    const hone_store_key *key = &decision->key;
    return (hone_lock_line){
        .algorithm = key->algorithm,
        .version = key->version,
        .key = key->key,
        .device = key->device,
        .platform = decision->platform,
        .kernel = decision->kernel,
        .config = decision->config,
        .call = decision->call,
        .revision = decision->revision};
}

// Whether a line can hold a decision: a lock of its own is asked.
static bool fits_a_line(const hone_store_decision *decision, hone_error *why)
{
    const hone_lock_line line = line_of(decision);
    hone_lock *scratch = NULL;
    hone_status status = hone_lock_create(hone_allocator_system(), &scratch, why);
    if (status == HONE_OK) status = hone_lock_put(scratch, &line, why);
    hone_lock_release(&scratch);
    return status == HONE_OK;
}

// NULL where the command does not know the operation.
static const hone_op *find_op(hone_cli *cli, const char *algorithm, const char *version)
{
    char name[2 * HONE_NAME_SIZE];
    snprintf(name, sizeof name, "%s@v%s", algorithm, version);
    return hone_op_find(cli->rt, name, NULL);
}

// The operation of a decision, and its platform; NULL where the command does not know one of them.
static const hone_op *op_of(hone_cli *cli, const hone_store_decision *decision, hone_platform *out_platform)
{
    if (hone_platform_parse(decision->platform, out_platform, NULL) != HONE_OK) return NULL;
    return find_op(cli, decision->key.algorithm, decision->key.version);
}

// Whether the command's registry has the kernel.
static bool is_registered(hone_cli *cli, const hone_store_decision *decision)
{
    hone_platform platform;
    const hone_op *op = op_of(cli, decision, &platform);
    return op != NULL && cli_kernel_named(cli, op, decision->kernel, platform, HONE_BACKEND_NONE) != NULL;
}

// Whether it has kernels of a decision's algorithm and platform. Of others it knows nothing, and cannot say that one is gone.
static bool is_known(hone_cli *cli, const hone_store_decision *decision)
{
    hone_platform platform;
    const hone_op *op = op_of(cli, decision, &platform);
    if (op == NULL) return false;
    const hone_kernel_ref **kernels = NULL;
    const size_t count = cli_kernels(cli, op, &kernels);
    bool found = false;
    for (size_t i = 0; i < count && !found; i++)
        found = hone_kernel_of(kernels[i])->platform == platform;
    hone_kernels_release(&kernels);
    return found;
}

// What no line can hold, and what hone itself would not serve from the store, is not pinned.
static bool is_servable(session *s, const hone_store_decision *decision, hone_error *why)
{
    hone_decision read;
    if (!fits_a_line(decision, why)) return false;
    return !is_known(s->cli, decision) || hone_decision_read(s->cli->rt, NULL, decision, &read, why) == HONE_OK;
}

static size_t rank_of(const session *s, hone_regime regime)
{
    size_t rank = 0;
    while (rank < s->regime_count && s->regimes[rank] != regime)
        rank++;
    return rank;
}

static size_t rank_of_key(const session *s, const hone_store_key *key)
{
    char *name = cli_key_name(key);
    const json_t *rank = json_object_get(s->ranks, name);
    free(name);
    return rank == NULL ? s->regime_count : (size_t)json_integer_value(rank);
}

// Of a call's decisions in several regimes one is served.
static bool note_rank(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    session *s = ctx;
    const size_t rank = rank_of(s, decision->regime);
    if (rank >= rank_of_key(s, &decision->key)) return true;
    char *name = cli_key_name(&decision->key);
    json_object_set_new(s->ranks, name, json_integer((json_int_t)rank));
    free(name);
    return true;
}

static bool accept(session *s, const hone_store_decision *decision)
{
    const hone_store_key *key = &decision->key;
    const size_t rank = rank_of(s, decision->regime);
    hone_error why = {.message = ""};
    if (!is_named(s, key->algorithm, key->version, key->key, key->device)) return false;
    if (rank > rank_of_key(s, key)) return false;
    if (rank == s->regime_count)
        snprintf(why.message, sizeof why.message, "HONE_STABLE asks for a stable choice, and this one is not");
    if (rank == s->regime_count || !is_servable(s, decision, &why)) {
        leave_out(s, decision, why.message);
        return false;
    }
    s->unverified += !decision->verified;
    return true;
}

typedef struct taking {
    session *s;
    hone_lock *lock;
    hone_status status;
    hone_error *err;
} taking;

static bool take(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    taking *t = ctx;
    const hone_lock_line line = line_of(decision);
    if (accept(t->s, decision)) t->status = hone_lock_put(t->lock, &line, t->err);
    return t->status == HONE_OK;
}

static hone_status read_one(session *s, hone_store *store, hone_lock **out, hone_error *err)
{
    hone_status status = hone_lock_create(hone_allocator_system(), out, err);
    taking t = {s, *out, HONE_OK, err};
    s->regime_count = hone_served_regimes(s->cli->rt, s->regimes, HONE_REGIME_COUNT);
    s->ranks = json_object();
    if (status == HONE_OK) status = hone_store_scan(store, HONE_RECORD_DECISION, NULL, note_rank, s, err);
    if (status == HONE_OK) status = hone_store_scan(store, HONE_RECORD_DECISION, NULL, take, &t, err);
    json_decref(s->ranks);
    return status == HONE_OK ? t.status : status;
}

// The system's store answers where the user's has nothing.
static hone_status add_system(session *s, hone_error *err)
{
    hone_lock *lines = NULL;
    hone_store *store = NULL;
    const bool is_here = hone_store_of(s->cli->rt, HONE_STORE_OF_SYSTEM, &store, NULL) == HONE_OK;
    hone_status status = is_here ? read_one(s, store, &lines, err) : HONE_OK;
    for (size_t i = 0; i < hone_lock_size(lines) && status == HONE_OK; i++) {
        const hone_lock_line *line = hone_lock_at(lines, i);
        if (hone_lock_find(s->stored, line->algorithm, line->version, line->key, line->device) == NULL)
            status = hone_lock_put(s->stored, line, err);
    }
    hone_lock_release(&lines);
    return status;
}

static int read_stores(session *s, hone_store *store)
{
    hone_error err;
    hone_status status = read_one(s, store, &s->stored, &err);
    if (status == HONE_OK) status = add_system(s, &err);
    return status == HONE_OK ? 0 : cli_fail(&err);
}

// The file ------------------------------------------------------------------------------------------------------------

static hone_status split_lines(session *s, const hone_lock *file, hone_error *err)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; i < hone_lock_size(file) && status == HONE_OK; i++) {
        const hone_lock_line *line = hone_lock_at(file, i);
        bool named = is_named(s, line->algorithm, line->version, line->key, line->device);
        status = hone_lock_put(named ? s->locked : s->outside, line, err);
    }
    return status;
}

// Whether a file is empty, or begins as lock files do, be it behind the mark of a conflict.
static bool was_a_lock_file(const char *path)
{
    enum { BYTES = 32 << 20 };
    static const char magic[] = "hone.lock ", conflict[] = "<<<<<<<";
    cli_text text;
    hone_error err;
    if (cli_read_plain_file(path, BYTES, &text, &err) != HONE_OK) return false;
    const char *line = cli_text_string(&text), *next = strchr(line, '\n');
    if (next != NULL && strncmp(line, conflict, sizeof conflict - 1) == 0) line = next + 1;
    const bool was = text.size == 0 || strncmp(line, magic, sizeof magic - 1) == 0;
    cli_text_deinit(&text);
    return was;
}

// A damaged file is in the way of what keeps some of its lines, not of what replaces them all. What never was a lock
// file is somebody's.
static bool may_replace(const session *s, hone_error *err)
{
    if (err->status != HONE_CORRUPT || s->cli->options.check || s->devices != NULL || s->call_count > 0) return false;
    if (!was_a_lock_file(s->path)) {
        char message[sizeof err->message];
        memcpy(message, err->message, sizeof message);
        snprintf(
            err->message, sizeof err->message, "left as it is; name another path with --lock, or remove it: %.900s",
            message);
        return false;
    }
    cli_warn("%s was edited, merged or cut: its lines are replaced by the store's choices", s->path);
    return true;
}

// A file that is not there yet has no lines, unless it is what is asked about.
static int read_file(session *s)
{
    hone_lock *file = NULL;
    hone_error err;
    hone_status status = hone_lock_create(hone_allocator_system(), &s->locked, &err);
    if (status == HONE_OK) status = hone_lock_create(hone_allocator_system(), &s->outside, &err);
    if (status == HONE_OK) status = hone_lock_read(hone_allocator_system(), s->path, 0, &file, &err);
    bool none = status == HONE_NOT_FOUND && !s->cli->options.check;
    if (none || (status != HONE_OK && may_replace(s, &err))) status = HONE_OK;
    if (status == HONE_OK) status = split_lines(s, file, &err);
    hone_lock_release(&file);
    if (status == HONE_NOT_FOUND) {
        cli_warn("%s: there is no lock file yet: hone lock writes it", s->path);
        return EXIT_NO;
    }
    return status == HONE_OK ? 0 : cli_fail(&err);
}

// Every call that was named must be somewhere, and a file is not emptied by a store that knows nothing.
static int check_found(session *s, const hone_store *store)
{
    int status = 0;
    for (size_t i = 0; i < s->call_count; i++) {
        if (s->calls[i].found) continue;
        cli_warn("there is no decision for %s in %s: tune it first", s->calls[i].text, hone_store_url(store));
        status = EXIT_NO;
    }
    const char *device = s->cli->options.device;
    if (status != 0 || hone_lock_size(s->stored) > 0) return status;
    if (s->cli->options.check && (device == NULL || hone_lock_size(s->locked) > 0)) return 0;
    if (s->cli->options.check) {
        cli_warn("neither %s nor %s has a choice for %s", s->path, hone_store_url(store), device);
        return EXIT_NO;
    }
    cli_warn(
        "%s has nothing to pin%s%s: tune first, or name another store; %s is as it was", hone_store_url(store),
        device == NULL ? "" : " for ", device == NULL ? "" : device, s->path);
    return EXIT_NO;
}

// Differences ---------------------------------------------------------------------------------------------------------

static json_t *choice_of(const hone_lock_line *line)
{
    if (line == NULL) return json_null();
    return json_pack(
        "{s:s, s:s, s:s?, s:o}", "platform", line->platform, "kernel", line->kernel, "revision", line->revision,
        "config", json_loads(line->config, 0, NULL));
}

static void add_name(json_t *names, const char *prefix, const char *name)
{
    char text[2 * HONE_NAME_SIZE + 16];
    snprintf(text, sizeof text, "%s%.100s", prefix, name);
    json_array_append_new(names, json_string(text));
}

// "kernel", "config.unroll": what two lines of one key say differently.
static json_t *differing(const hone_lock_line *a, const hone_lock_line *b)
{
    json_t *names = json_array();
    if (a == NULL || b == NULL) return names;
    if (strcmp(a->platform, b->platform) != 0) add_name(names, "", "platform");
    if (strcmp(a->kernel, b->kernel) != 0) add_name(names, "", "kernel");
    if (a->revision != NULL && b->revision != NULL && strcmp(a->revision, b->revision) != 0)
        add_name(names, "", "revision");
    json_t *before = json_loads(a->config, 0, NULL), *after = json_loads(b->config, 0, NULL);
    const char *name;
    json_t *value;
    json_object_foreach(before, name, value)
    {
        json_t *other = json_object_get(after, name);
        if (other == NULL || !json_equal(value, other)) add_name(names, "config.", name);
    }
    json_object_foreach(after, name, value)
    {
        if (json_object_get(before, name) == NULL) add_name(names, "config.", name);
    }
    json_decref(before);
    json_decref(after);
    return names;
}

typedef struct differences {
    json_t *rows;
    size_t added, changed, removed;
} differences;

static bool add_difference(void *ctx, const hone_lock_change *change)
{
    differences *d = ctx;
    const hone_lock_line *locked = change->before, *stored = change->after;
    const hone_lock_line *line = locked != NULL ? locked : stored;
    const char *what = locked == NULL ? "added" : stored == NULL ? "removed" : "changed";
    d->added += locked == NULL;
    d->removed += stored == NULL;
    d->changed += locked != NULL && stored != NULL;
    json_array_append_new(
        d->rows, json_pack(
                     "{s:s, s:s, s:s, s:s, s:s, s:s?, s:o, s:o, s:o}", "change", what, "algorithm", line->algorithm,
                     "version", line->version, "key", line->key, "device", line->device, "call", line->call, "locked",
                     choice_of(locked), "stored", choice_of(stored), "differs", differing(locked, stored)));
    return true;
}

static void print_line(char mark, const hone_lock_line *line)
{
    if (line == NULL) return;
    const size_t size = hone_lock_line_text(line, NULL, 0) + 1;
    char *text = malloc(size);
    if (text == NULL) cli_no_memory();
    hone_lock_line_text(line, text, size);
    printf("%c%s", mark, text);
    free(text);
}

static bool print_difference(void *ctx, const hone_lock_change *change)
{
    (void)ctx;
    const hone_lock_line *locked = change->before, *stored = change->after;
    print_line('-', locked);
    print_line('+', stored);
    json_t *names = differing(locked, stored);
    for (size_t i = 0; i < json_array_size(names); i++)
        printf("%s%s", i == 0 ? "# differs: " : ", ", json_string_value(json_array_get(names, i)));
    if (json_array_size(names) > 0) putchar('\n');
    json_decref(names);
    return true;
}

// Answers -------------------------------------------------------------------------------------------------------------

static void say_unverified(const session *s)
{
    if (s->unverified > 0)
        cli_warn(
            "%zu of them %s not verified: hone tune verifies what it stores", s->unverified,
            s->unverified == 1 ? "is" : "are");
}

static int check(session *s, const hone_store *store, differences *d)
{
    size_t count = d->added + d->changed + d->removed;
    hone_error err;
    if (s->cli->options.json) {
        cli_print_json(json_pack(
            "{s:s, s:s, s:b, s:I, s:O, s:O}", "lock", s->path, "store", hone_store_url(store), "drift", count > 0,
            "choices", (json_int_t)hone_lock_size(s->locked), "changes", d->rows, "left_out", s->left_out));
    } else if (count > 0) {
        printf("--- %s\n+++ %s\n", s->path, hone_store_url(store));
        if (hone_lock_compare(s->locked, s->stored, print_difference, NULL, &err) != HONE_OK) return cli_fail(&err);
    } else {
        const size_t size = hone_lock_size(s->locked);
        printf("%s: %zu choice%s, as in %s\n", s->path, size, cli_plural(size), hone_store_url(store));
    }
    if (count == 0) return EXIT_DONE;
    cli_warn(
        "%s has drifted: %zu changed, %zu only in the store, %zu only in the lock file (hone lock writes it "
        "anew)",
        s->path, d->changed, d->added, d->removed);
    return EXIT_NO;
}

static int write_file(session *s, const differences *d)
{
    hone_error err;
    hone_status status = HONE_OK;
    for (size_t i = 0; i < hone_lock_size(s->outside) && status == HONE_OK; i++)
        status = hone_lock_put(s->stored, hone_lock_at(s->outside, i), &err);
    if (status == HONE_OK) status = hone_lock_write(s->stored, s->path, &err);
    if (status != HONE_OK) return cli_fail(&err);
    if (s->cli->options.json)
        cli_print_json(json_pack(
            "{s:s, s:I, s:I, s:I, s:I, s:I, s:O}", "lock", s->path, "choices", (json_int_t)hone_lock_size(s->stored),
            "added", (json_int_t)d->added, "changed", (json_int_t)d->changed, "removed", (json_int_t)d->removed,
            "unverified", (json_int_t)s->unverified, "left_out", s->left_out));
    else
        printf(
            "%s: %zu choice%s (%zu added, %zu changed, %zu removed)\n", s->path, hone_lock_size(s->stored),
            cli_plural(hone_lock_size(s->stored)), d->added, d->changed, d->removed);
    say_unverified(s);
    return EXIT_DONE;
}

static int compare_and_answer(session *s, const hone_store *store)
{
    differences d = {.rows = json_array()};
    hone_error err;
    int status = 0;
    if (hone_lock_compare(s->locked, s->stored, add_difference, &d, &err) != HONE_OK)
        status = cli_fail(&err);
    else
        status = s->cli->options.check ? check(s, store, &d) : write_file(s, &d);
    json_decref(d.rows);
    return status;
}

static int with_store(session *s)
{
    hone_store *store = NULL;
    int status = cli_open_store(s->cli, &store);
    if (status == 0) status = read_file(s);
    if (status == 0) status = read_stores(s, store);
    if (status == 0) status = check_found(s, store);
    if (status == 0) status = compare_and_answer(s, store);
    hone_store_close(&store);
    return status;
}

static bool is_key_of(hone_cli *cli, const hone_lock_line *line, hone_error *why)
{
    hone_call *call = NULL;
    const hone_op *op = line->call == NULL ? NULL : find_op(cli, line->algorithm, line->version);
    if (op == NULL) return true;
    json_t *keys = json_object();
    hone_status status = hone_call_parse(hone_allocator_system(), hone_op_signature(op), line->call, &call, why);
    if (status == HONE_OK) status = hone_call_keys(call, note_key, keys, why);
    const bool is = status == HONE_OK && json_object_get(keys, line->key) != NULL;
    if (status == HONE_OK && !is)
        snprintf(
            why->message, sizeof why->message, "%s is not the key of %s, expected %s", line->key, line->call,
            hone_call_key(call));
    hone_call_release(&call);
    json_decref(keys);
    return is;
}

// A line that does not agree with the registry is refused. Kernels that only a program or a pack has are theirs.
static int check_line(hone_cli *cli, const char *path, const hone_lock_line *line)
{
    const hone_store_decision decision = {
        .key = {.device = line->device, .algorithm = line->algorithm, .version = line->version, .key = line->key},
        .platform = line->platform,
        .kernel = line->kernel,
        .config = line->config,
        .call = line->call,
        .revision = line->revision,
        .source = "store"};
    hone_decision read;
    hone_error why = {.message = ""};
    const bool known = is_registered(cli, &decision);
    if (is_key_of(cli, line, &why) &&
        (!known || hone_decision_read(cli->rt, NULL, &decision, &read, &why) == HONE_OK)) {
        if (!known)
            cli_warn(
                "%s:%u: %s/%s of %s is not registered here (--program names a program that has it): not "
                "checked",
                path, (unsigned)line->number, line->platform, line->kernel, line->algorithm);
        return 0;
    }
    cli_warn("%s:%u: %s", path, (unsigned)line->number, why.message);
    return EXIT_WORLD;
}

static int reseal(hone_cli *cli, const char *path)
{
    if (cli->count > 0 || cli->options.check || cli->options.device != NULL)
        return cli_usage("lock --reseal takes no calls, no --check and no --device: it keeps every line");
    hone_lock *lock = NULL;
    hone_error err;
    int status = cli_open_unlocked(cli, HONE_POLICY_HEURISTIC);
    if (status != 0) return status;
    if (hone_lock_read(hone_allocator_system(), path, HONE_LOCK_UNSEALED, &lock, &err) != HONE_OK)
        return cli_fail(&err);
    const size_t count = hone_lock_size(lock);
    for (size_t i = 0; status == 0 && i < count; i++)
        status = check_line(cli, path, hone_lock_at(lock, i));
    if (status == 0 && hone_lock_write(lock, path, &err) != HONE_OK) status = cli_fail(&err);
    hone_lock_release(&lock);
    if (status != 0) return status;
    if (cli->options.json)
        cli_print_json(json_pack("{s:s, s:I}", "lock", path, "choices", (json_int_t)count));
    else
        printf("%s: %zu choice%s, sealed\n", path, count, cli_plural(count));
    return EXIT_DONE;
}

static void close_session(session *s)
{
    for (size_t i = 0; i < s->call_count; i++) {
        json_decref(s->calls[i].keys);
        hone_call_release(&s->calls[i].call);
    }
    free(s->calls);
    hone_lock_release(&s->stored);
    hone_lock_release(&s->locked);
    hone_lock_release(&s->outside);
    json_decref(s->left_out);
    json_decref(s->devices);
}

int cli_lock(hone_cli *cli)
{
    const char *path = cli_lock_path(cli);
    if (path == NULL) path = "hone.lock";
    if (cli->options.reseal) return reseal(cli, path);
    session s = {.cli = cli, .path = path, .left_out = json_array()};
    int status = cli_open_unlocked(cli, HONE_POLICY_HEURISTIC);
    if (status == 0) status = parse_calls(&s);
    if (status == 0) status = cli_named_devices(cli, &s.devices);
    if (status == 0) status = with_store(&s);
    close_session(&s);
    return status;
}
