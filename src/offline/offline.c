// Programs: reading one, and what was found in it.
#include "offline/program.h"

#include "base/error.h"
#include "hone/describe.h"
#include "offline/prove.h"

#include <string.h>

static const char where_read[] = "offline.read";

typedef struct reading {
    const hone_offline_environment *environment;
    hone_program *program;
    hone_program_bytes source;
    hone_graph graph;
    hone_finds finds;
    hone_names known; // operations by identity
    hone_names seen;  // labels by their text
    size_t disagreeing;
    int patience; // that is left for proofs
    hone_error *err;
} reading;

static int64_t add_counts(int64_t a, int64_t b)
{
    int64_t sum;
    return a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum) ? -1 : sum;
}

// What a find adds to the count of an operation that was found before. A gradient's backward part is no call of its own
// where there is the call; what reads nothing, or multiplies nothing where the call does, is what partial evaluation
// left of one, or took out of a loop.
static int64_t merge_counts(const hone_matched *a, const hone_matched *b)
{
    if (a->transposed != b->transposed) return a->transposed ? b->shown.count : a->shown.count;
    if (a->seen != b->seen) return a->seen ? a->shown.count : b->shown.count;
    if (a->multiplies != b->multiplies) return a->multiplies ? a->shown.count : b->shown.count;
    return add_counts(a->shown.count, b->shown.count);
}

// Of two places where one call stands the one that has more in the caches says how it is measured; what is not counted
// as a call says nothing.
static void merge_bytes(hone_matched *kept, const hone_matched *more)
{
    const bool replaces = kept->transposed != more->transposed ? kept->transposed
                          : kept->seen != more->seen           ? !kept->seen
                                                               : kept->shown.once_bytes < 0;
    const bool equal = kept->transposed == more->transposed && kept->seen == more->seen &&
                       kept->shown.once_bytes >= 0 && more->shown.once_bytes >= 0;
    if (!replaces && !(equal && more->shown.once_bytes < kept->shown.once_bytes)) return;
    kept->shown.once_bytes = more->shown.once_bytes;
    kept->read_bytes = more->read_bytes;
}

// The stronger match of two finds of one operation stays.
static void merge_item(hone_matched *kept, hone_matched *more)
{
    int64_t count = merge_counts(kept, more);
    hone_matched bytes = *kept;
    merge_bytes(&bytes, more);
    bool better = more->shown.matched != HONE_MATCH_NONE &&
                  (kept->shown.matched == HONE_MATCH_NONE || more->shown.matched < kept->shown.matched);
    bool forward = !kept->transposed || !more->transposed, seen = kept->seen || more->seen,
         multiplies = kept->multiplies || more->multiplies;
    if (better) {
        hone_call_release(&kept->call);
        *kept = *more;
    } else {
        hone_call_release(&more->call);
    }
    kept->shown.count = count;
    kept->shown.once_bytes = bytes.shown.once_bytes;
    kept->read_bytes = bytes.read_bytes;
    kept->transposed = !forward;
    kept->seen = seen;
    kept->multiplies = multiplies;
}

static hone_status add_item(reading *r, hone_matched *item)
{
    hone_program *p = r->program;
    hone_view identity = hone_view_of(item->identity);
    uint32_t known = hone_names_get(&r->known, 0, identity);
    if (known != HONE_GRAPH_NONE) {
        merge_item(&p->items[known], item);
        return HONE_OK;
    }
    if (!hone_grow(&p->arena.allocator, &p->items, &p->capacity, p->count + 1, sizeof *p->items)) {
        hone_call_release(&item->call);
        return hone_fail_memory(r->err, where_read);
    }
    hone_names_put(&r->known, 0, identity, (uint32_t)p->count);
    p->items[p->count++] = *item;
    return r->known.failed ? hone_fail_memory(r->err, where_read) : HONE_OK;
}

// A label that is known for certain needs no second search: its calls are only counted.
static bool count_known(reading *r, const hone_found *found)
{
    uint32_t known = hone_names_get(&r->seen, 0, found->label->label.text);
    if (known == HONE_GRAPH_NONE || found->label->label.kind == HONE_LABEL_CUT) return false;
    hone_matched *item = &r->program->items[known];
    if (item->shown.matched == HONE_MATCH_NONE || item->shown.matched == HONE_MATCH_OPERANDS) return false;
    const hone_matched more = {
        .shown = {.count = found->count, .once_bytes = found->once_bytes},
        .read_bytes = found->read_bytes,
        .transposed = found->transposed,
        .seen = found->view_count > 0,
        .multiplies = found->multiplies};
    item->shown.count = merge_counts(item, &more);
    merge_bytes(item, &more);
    item->transposed = item->transposed && more.transposed;
    item->seen = item->seen || more.seen;
    item->multiplies = item->multiplies || more.multiplies;
    return true;
}

static void remember_label(reading *r, const hone_found *found, const char *identity)
{
    hone_names_put(&r->seen, 0, found->label->label.text, hone_names_get(&r->known, 0, hone_view_of(identity)));
}

static hone_status match_finds(reading *r)
{
    for (size_t i = 0; i < r->finds.count; i++) {
        hone_matched item;
        const hone_found *found = &r->finds.items[i];
        if (count_known(r, found)) continue;
        hone_status status = hone_match_found(r->environment, &r->program->arena, found, &r->patience, &item, r->err);
        if (status != HONE_OK) return status;
        r->disagreeing += item.disagrees;
        status = add_item(r, &item);
        if (status != HONE_OK) return status;
        remember_label(r, found, item.identity);
    }
    return r->seen.failed ? hone_fail_memory(r->err, where_read) : HONE_OK;
}

static bool has_algorithm(const hone_program *p, hone_view operation)
{
    for (size_t i = 0; i < p->count; i++)
        if (hone_view_is(operation, p->items[i].shown.algorithm)) return true;
    return false;
}

// A label that stands at no operation that was read.
static hone_status match_loose_label(reading *r, const hone_label *label)
{
    if (hone_names_get(&r->seen, 0, label->text) != HONE_GRAPH_NONE) return HONE_OK;
    hone_names_put(&r->seen, 0, label->text, 0);
    bool known = label->kind == HONE_LABEL_CUT && has_algorithm(r->program, label->operation);
    if (known || r->program->count >= HONE_FINDS_MAX) return HONE_OK;
    hone_graph_label at = {.label = *label};
    hone_found found = {
        .label = &at, .count = -1, .read_bytes = -1, .once_bytes = -1}; // seen nowhere: it takes no part in counting
    hone_matched item;
    hone_status status = hone_match_found(r->environment, &r->program->arena, &found, &r->patience, &item, r->err);
    return status == HONE_OK ? add_item(r, &item) : status;
}

// Locations that operations were merged out of, or behind the place where the reading ended: in text wherever a place
// is named, in binary forms the names that the reader left.
static hone_status match_loose_labels(reading *r)
{
    bool text = r->source.form->text;
    hone_status status = HONE_OK;
    hone_label label;
    for (size_t i = 0; i < (text ? 1 : r->graph.loose_count); i++) {
        hone_label_walk walk =
            text ? hone_label_walk_of(r->source.bytes) : hone_graph_labels(&r->graph, r->graph.loose[i]);
        while (status == HONE_OK && hone_label_next(&walk, &label))
            if (!text || hone_form_names_place(r->source.bytes, label.text.data)) status = match_loose_label(r, &label);
    }
    if (status != HONE_OK) return status;
    return r->seen.failed ? hone_fail_memory(r->err, where_read) : HONE_OK;
}

static bool same_tensor(const hone_tensor *a, const hone_tensor *b)
{
    return a->ndim == b->ndim && memcmp(&a->dtype, &b->dtype, sizeof a->dtype) == 0 &&
           (a->ndim == 0 || memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof a->shape[0]) == 0);
}

static bool reads(const hone_call *call, const hone_tensor *tensor)
{
    for (size_t i = 0; i < hone_signature_count(hone_call_signature(call)); i++) {
        const hone_tensor *other = hone_call_tensor(call, i);
        if (other != NULL && same_tensor(other, tensor)) return true;
    }
    return false;
}

// True when the larger call reads all that the smaller one does, and more.
static bool reads_more(const hone_call *larger, const hone_call *smaller)
{
    size_t count = hone_signature_count(hone_call_signature(smaller));
    bool more = false;
    for (size_t i = 0; i < count; i++) {
        const hone_tensor *tensor = hone_call_tensor(smaller, i), *other = hone_call_tensor(larger, i);
        if (tensor != NULL && !reads(larger, tensor)) return false;
        more |= other != NULL && !reads(smaller, other);
    }
    return more;
}

// One operation is a part of another: torn off by optimisation, it was not matched, or shows fewer of the same arrays.
static bool is_part(const hone_matched *part, const hone_matched *whole, bool optimised)
{
    if (part == whole || whole->shown.key != NULL || strcmp(part->shown.algorithm, whole->shown.algorithm) != 0)
        return false;
    if (part->call == NULL || whole->call == NULL) return whole->call != NULL;
    return optimised && reads_more(whole->call, part->call);
}

static bool is_fragment(const hone_program *p, const hone_matched *item, bool optimised)
{
    if (item->shown.key != NULL || item->shown.matched == HONE_MATCH_LABEL) return false;
    for (size_t i = 0; i < p->count; i++)
        if (is_part(item, &p->items[i], optimised)) return true;
    return false;
}

// Parts of an operation without its key, which optimisation tore off, say nothing where the rest was matched.
static bool drop_fragments(hone_program *p, bool optimised)
{
    size_t kept = 0;
    bool *drop = hone_alloc_array(&p->arena.allocator, p->count, sizeof *drop);
    for (size_t i = 0; drop != NULL && i < p->count; i++)
        drop[i] = is_fragment(p, &p->items[i], optimised);
    for (size_t i = 0; drop != NULL && i < p->count; i++) {
        if (drop[i])
            hone_call_release(&p->items[i].call);
        else
            p->items[kept++] = p->items[i];
    }
    if (drop != NULL) p->count = kept;
    hone_free(&p->arena.allocator, drop);
    return drop != NULL;
}

static void add_note(hone_buffer *note, const char *text)
{
    if (note->size > 0) hone_buffer_text(note, "; ");
    hone_buffer_text(note, text);
}

static hone_status write_note(reading *r)
{
    hone_program *p = r->program;
    hone_buffer note;
    hone_buffer_init(&note, p->arena.allocator);
    if (r->graph.cut) add_note(&note, "the text is cut short: what stands behind its end was not read");
    if (r->graph.unlocated)
        add_note(
            &note,
            "it does not say where its operations come from, and so has no labels: operations are found only where "
            "functions still have their names; print it with debug_info=True");
    else if (p->count == 0)
        add_note(&note, "there are no labels in it: was EJKERNEL_OPS_STAMP set when it was lowered?");
    if (r->graph.optimised)
        add_note(
            &note,
            "the program is optimised: operations are merged, and labels may be of an earlier run (compile cache)");
    if (r->disagreeing > 0)
        add_note(&note, "labels disagree with the operands that the program gives them: they may be of an earlier run");
    if (r->finds.full || p->count >= HONE_FINDS_MAX) add_note(&note, "it has more operations than are read");
    if (note.size > 0) p->note = hone_arena_text(&p->arena, note.data, note.size);
    bool failed = note.failed || (note.size > 0 && p->note == NULL);
    hone_buffer_deinit(&note);
    return failed ? hone_fail_memory(r->err, where_read) : HONE_OK;
}

// Once the step has come round, nothing is left in the caches of what it reads once when it reads more than they hold.
static void choose_regimes(reading *r)
{
    hone_program *p = r->program;
    const int64_t holds = r->environment->cache_bytes;
    p->step_bytes = r->finds.step_bytes;
    for (size_t i = 0; i < p->count && holds > 0 && p->step_bytes > holds; i++) {
        hone_matched *item = &p->items[i];
        if (item->shown.once_bytes > 0 && item->shown.once_bytes >= item->read_bytes - item->shown.once_bytes)
            item->shown.regime = HONE_COLD;
    }
}

static bool is_algorithm(void *ctx, hone_view name)
{
    const reading *r = ctx;
    char text[64];
    if (name.size == 0 || name.size >= sizeof text) return false;
    memcpy(text, name.data, name.size);
    text[name.size] = '\0';
    return hone_registry_find(r->environment->registry, text, NULL) != NULL;
}

static hone_status read_program(reading *r)
{
    r->source.form->read(r->source.bytes, &r->graph);
    r->graph.cut |= r->source.cut;
    if (!r->graph.failed) hone_graph_finish(&r->graph);
    if (!r->graph.failed && r->graph.unlocated) hone_graph_place_calls(&r->graph, is_algorithm, r);
    if (r->graph.failed || !hone_find_calls(&r->graph, &r->finds)) return hone_fail_memory(r->err, where_read);
    hone_status status = match_finds(r);
    if (status == HONE_OK) status = match_loose_labels(r);
    if (status == HONE_OK && !drop_fragments(r->program, r->graph.optimised))
        status = hone_fail_memory(r->err, where_read);
    if (status != HONE_OK) return status;
    choose_regimes(r);
    if (r->program->count == 0 && r->graph.op_count == 0)
        return hone_fail(
            r->err, HONE_CORRUPT, where_read, "%s begins like %s, but nothing in it can be read", r->program->name,
            r->program->form->name);
    if (r->program->count == 0 && r->graph.cut)
        return hone_fail(
            r->err, HONE_CORRUPT, where_read,
            "%s is truncated, and no operation can be recognised: the locations at its end are missing; print it again",
            r->program->name);
    return write_note(r);
}

static hone_program *create_program(hone_allocator allocator, const char *name)
{
    hone_program *p = hone_alloc(&allocator, sizeof *p);
    if (p == NULL) return NULL;
    p->arena.allocator = allocator;
    p->name = hone_arena_text(&p->arena, name, strlen(name));
    if (p->name == NULL) hone_program_release(&p);
    return p;
}

hone_status hone_offline_read(
    const hone_offline_environment *environment,
    const char *name,
    const char *text,
    size_t size,
    hone_program **out,
    hone_error *err)
{
    *out = NULL;
    reading r = {.environment = environment, .patience = HONE_PROVE_PATIENCE, .err = err};
    hone_status status = hone_program_open(&environment->allocator, name, (hone_view){text, size}, &r.source, err);
    if (status == HONE_OK) r.program = create_program(environment->allocator, name);
    if (status == HONE_OK && r.program == NULL) status = hone_fail_memory(err, where_read);
    hone_graph_init(&r.graph, &environment->allocator);
    hone_names_init(&r.known, &environment->allocator);
    hone_names_init(&r.seen, &environment->allocator);
    if (status == HONE_OK) {
        r.program->form = r.source.form;
        status = read_program(&r);
    }
    hone_free(&environment->allocator, r.finds.items);
    hone_names_deinit(&r.known);
    hone_names_deinit(&r.seen);
    hone_graph_deinit(&r.graph);
    hone_buffer_deinit(&r.source.unpacked);
    if (status == HONE_OK)
        *out = r.program;
    else
        hone_program_release(&r.program);
    return status;
}

void hone_program_release(hone_program **program)
{
    if (program == NULL) return;
    hone_program *p = *program;
    if (p == NULL) return;
    for (size_t i = 0; i < p->count; i++)
        hone_call_release(&p->items[i].call);
    hone_allocator allocator = p->arena.allocator;
    hone_free(&allocator, p->items);
    hone_arena_destroy(&p->arena);
    hone_free(&allocator, p);
    *program = NULL;
}

const char *hone_program_dialect(const hone_program *program)
{
    return program != NULL ? program->form->dialect : NULL;
}

const char *hone_program_form(const hone_program *program)
{
    return program != NULL ? program->form->name : NULL;
}

const char *hone_program_note(const hone_program *program)
{
    return program != NULL ? program->note : NULL;
}

size_t hone_program_operations(const hone_program *program)
{
    return program != NULL ? program->count : 0;
}

int64_t hone_program_step_bytes(const hone_program *program)
{
    return program != NULL ? program->step_bytes : 0;
}

const hone_operation *hone_program_operation(const hone_program *program, size_t index)
{
    return program != NULL && index < program->count ? &program->items[index].shown : NULL;
}

const char *hone_match_name(hone_match match)
{
    static const char *const names[] = {"none", "label", "recorded", "proved", "operands"};
    return (size_t)match < sizeof names / sizeof names[0] ? names[match] : "none";
}
