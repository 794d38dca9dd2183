// Random spaces, enumerated and counted, against trying every config with the plain evaluator: what lowering shares,
// keeps and lists may never change an answer.
#include "space/order.h"
#include "space/ranking.h"
#include "space/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PARAMETERS_MAX = 6, CONFIGS_MAX = 5000, SPACES = 3000 };

typedef struct maker {
    uint64_t state;
    char text[4000];
    size_t used, parameters;
} maker;

static uint32_t pick(maker *m, uint32_t limit)
{
    m->state = m->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(m->state >> 33) % limit;
}

static void put(maker *m, const char *text)
{
    m->used += (size_t)snprintf(m->text + m->used, sizeof m->text - m->used, "%s", text);
    assert_true(m->used < sizeof m->text);
}

static void put_number(maker *m, const char *format, uint32_t number)
{
    char text[40];
    snprintf(text, sizeof text, format, number);
    put(m, text);
}

static void put_sum(maker *m, unsigned depth)
{
    static const char *const operators[] = {" + ", " * ", " - ", " % ", " / ", " // "};
    switch (pick(m, depth == 0 ? 2 : 5)) {
    case 0:
        put_number(m, "%u", 1 + pick(m, 9));
        return;
    case 1:
        put_number(m, "p%u", pick(m, (uint32_t)m->parameters));
        return;
    case 2:
        put(m, pick(m, 2) == 0 ? "min(" : "max(");
        put_sum(m, depth - 1);
        put(m, ", ");
        break;
    default:
        put(m, "(");
        put_sum(m, depth - 1);
        put(m, operators[pick(m, 6)]);
    }
    put_sum(m, depth - 1);
    put(m, ")");
}

static void put_condition(maker *m, unsigned depth)
{
    static const char *const comparisons[] = {" < ", " <= ", " > ", " >= ", " == ", " != "};
    static const char *const joins[] = {" and ", " or ", " && ", " || "};
    if (depth > 0 && pick(m, 2) == 0) {
        put(m, pick(m, 4) == 0 ? "not (" : "(");
        put_condition(m, depth - 1);
        put(m, joins[pick(m, 4)]);
        put_condition(m, depth - 1);
        put(m, ")");
        return;
    }
    put_sum(m, 2);
    for (uint32_t i = 1 + pick(m, 4) / 3; i > 0; i--) {
        put(m, comparisons[pick(m, 6)]);
        put_sum(m, 2);
    }
}

static void put_parameter(maker *m, size_t index)
{
    static const char *const values[] = {"1..6",    "1..8 *2",       "3 | 1 | 2",    "2",
                                         "1..9 +3", "0.5 | 2 | 1.5", "true | false", "1 | 4 | 16 | 64"};
    put_number(m, "p%u: ", (uint32_t)index);
    put(m, values[pick(m, 8)]);
    put(m, "\n");
}

static void make_space(maker *m, uint64_t seed)
{
    *m = (maker){.state = seed * 2654435761u + 1};
    m->parameters = 1 + pick(m, PARAMETERS_MAX);
    for (size_t i = 0; i < m->parameters; i++)
        put_parameter(m, i);
    for (uint32_t i = pick(m, 5); i > 0; i--) {
        put(m, "where ");
        put_condition(m, 2);
        put(m, "\n");
    }
}

typedef struct configs {
    hone_config list[CONFIGS_MAX];
    size_t count;
} configs;

static bool collect(void *ctx, const hone_config *config)
{
    configs *to = ctx;
    assert_true(to->count < CONFIGS_MAX);
    to->list[to->count++] = *config;
    return true;
}

// HONE_OK when every constraint could be evaluated; *out_valid says whether all hold.
static hone_status evaluate(const hone_space *space, const uint32_t *positions, bool *out_valid)
{
    hone_scalar slots[PARAMETERS_MAX], value;
    *out_valid = true;
    for (size_t i = 0; i < space->name_count; i++) {
        size_t parameter = space->names[i].index;
        slots[i] = space->parameters[parameter].values[positions[parameter]].scalar;
    }
    for (size_t i = 0; i < space->constraint_count; i++) {
        hone_status status = hone_expression_evaluate(space->constraints[i], slots, &value, NULL);
        if (status != HONE_OK) return status;
        *out_valid = *out_valid && hone_scalar_truth(&value);
    }
    return HONE_OK;
}

// The next combination, the last parameter fastest; false after the last one.
static bool advance(const hone_space *space, uint32_t *positions)
{
    for (size_t i = space->parameter_count; i-- > 0;) {
        if (++positions[i] < space->parameters[i].count) return true;
        positions[i] = 0;
    }
    return false;
}

static hone_status try_all(const hone_space *space, configs *to)
{
    uint32_t positions[HONE_MAX_PARAMETERS] = {0};
    to->count = 0;
    do {
        bool valid;
        hone_config config = {.count = (uint32_t)space->parameter_count};
        hone_status status = evaluate(space, positions, &valid);
        if (status != HONE_OK) return status;
        for (size_t i = 0; i < space->parameter_count; i++)
            config.values[i] = hone_space_number(&space->parameters[i], positions[i]);
        if (valid) collect(to, &config);
    } while (advance(space, positions));
    return HONE_OK;
}

static configs tried, enumerated;

// A rank of each, and each of a rank.
static void assert_ranks(const hone_bound_space *bound)
{
    const hone_space_ranking *ranking;
    assert_int_equal(hone_space_ranking_of(bound, &ranking, NULL), HONE_OK);
    for (uint64_t i = 0; i < tried.count; i++) {
        hone_config config;
        uint64_t rank;
        assert_int_equal(hone_bound_space_at(bound, i, &config, NULL), HONE_OK);
        assert_int_equal(hone_bound_space_rank(bound, &config, &rank, NULL), HONE_OK);
        assert_int_equal(rank, i);
        if (bound->component_count > 1 || !ranking->in_text_order) continue;
        assert_memory_equal(&config, &tried.list[i], sizeof config);
    }
}

// However little may be used, what is known is true; whatever the order, the number is the same.
static void assert_diagrams(const hone_bound_space *bound, const hone_space_plan *plan)
{
    static const hone_space_limits limits[] = {{1 << 20, 1 << 20}, {1 << 20, 20}, {1 << 20, 3}, {300, 1 << 20}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        uint64_t low = 1, high = 1;
        bool complete = true;
        for (size_t component = 0; component < bound->component_count; component++) {
            hone_space_diagram diagram;
            hone_status status = hone_space_diagram_init(&diagram, bound, plan, component, &limits[i], NULL);
            assert_int_equal(status, HONE_OK);
            low *= diagram.low;
            high *= diagram.high;
            complete = complete && diagram.complete;
            hone_space_diagram_deinit(&diagram);
        }
        assert_true(low <= tried.count && tried.count <= high);
        assert_true(i > 0 || complete);
        assert_true(!complete || low == high);
    }
}

static void assert_any_order(const hone_bound_space *bound)
{
    hone_space_plan plan;
    uint8_t order[HONE_MAX_PARAMETERS];
    size_t count = bound->space->parameter_count;
    assert_diagrams(bound, &bound->plan);
    for (size_t i = 0; i < count; i++)
        order[i] = (uint8_t)(count - 1 - i);
    assert_int_equal(hone_space_plan_init(&plan, bound, order, NULL), HONE_OK);
    assert_diagrams(bound, &plan);
    hone_space_plan_deinit(&plan);
    (void)hone_space_choose_order(bound, order);
    assert_int_equal(hone_space_plan_init(&plan, bound, order, NULL), HONE_OK);
    assert_diagrams(bound, &plan);
    hone_space_plan_deinit(&plan);
}

// Returns false for a space with a config that cannot be evaluated: enumerating may never come to it.
static bool agree(const char *text)
{
    hone_space *space;
    hone_bound_space *bound = NULL;
    uint64_t count = 0;
    hone_error err = {0};
    hone_status status = hone_space_parse(hone_allocator_system(), text, &space, &err);
    if (status != HONE_OK) print_message("%s\n%s\n", text, err.message);
    assert_int_equal(status, HONE_OK);
    bool evaluated = hone_space_cartesian(space) <= CONFIGS_MAX && try_all(space, &tried) == HONE_OK;
    if (evaluated) {
        enumerated.count = 0;
        assert_int_equal(hone_space_bind(space, NULL, NULL, &bound, &err), HONE_OK);
        assert_int_equal(hone_bound_space_enumerate(bound, collect, &enumerated, &err), HONE_OK);
        assert_int_equal(hone_bound_space_count(bound, &count, &err), HONE_OK);
        if (count != tried.count || enumerated.count != tried.count) print_message("%s\n", text);
        assert_int_equal(count, tried.count);
        assert_int_equal(enumerated.count, tried.count);
        assert_memory_equal(enumerated.list, tried.list, tried.count * sizeof *tried.list);
        assert_ranks(bound);
        if (!bound->plan.refused) assert_any_order(bound);
    }
    hone_bound_space_release(&bound);
    hone_space_release(&space);
    return evaluated;
}

static void random_spaces_agree_with_trying_every_config(void **state)
{
    (void)state;
    static maker m;
    size_t agreed = 0;
    for (uint64_t seed = 0; seed < SPACES; seed++) {
        make_space(&m, seed);
        agreed += agree(m.text);
    }
    assert_true(agreed > SPACES / 2);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_spaces_agree_with_trying_every_config),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
