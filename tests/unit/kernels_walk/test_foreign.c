// Every row of foreign operations against the algorithm that it names: what it says of parameters is so.
#include "call/foreign.h"

#include "base/error.h"
#include "kernels/kernels.h"
#include "platforms/platform.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum {
    MOST_PARAMETERS = sizeof hone_foreign_operations[0].parameters / sizeof hone_foreign_operations[0].parameters[0]
};

static int open_registry(void **state)
{
    hone_registry *registry = NULL;
    hone_error err;
    hone_allocator system = hone_allocator_system();
    if (hone_registry_create(&system, hone_platform_facts_of, NULL, &registry, &err) != HONE_OK ||
        hone_kernels_register(registry, &err) != HONE_OK || hone_registry_load(registry, &err) != HONE_OK)
        return -1;
    *state = registry;
    return 0;
}

static int close_registry(void **state)
{
    hone_registry *registry = *state;
    hone_registry_destroy(&registry);
    return 0;
}

static const hone_signature *signature_of(hone_registry *registry, const hone_foreign_operation *operation)
{
    const hone_algorithm_entry *entry = hone_registry_find(registry, operation->algorithm, NULL);
    if (entry == NULL) fail_msg("%s: there is no algorithm %s", operation->name, operation->algorithm);
    return entry->signature;
}

static size_t count_of(const hone_foreign_operation *operation)
{
    size_t count = 0;
    while (count < MOST_PARAMETERS && operation->parameters[count].theirs != NULL)
        count++;
    return count;
}

static void every_parameter_is_one_of_hones_or_has_none(void **state)
{
    for (size_t i = 0; i < hone_foreign_operation_count; i++) {
        const hone_foreign_operation *o = &hone_foreign_operations[i];
        const hone_signature *signature = signature_of(*state, o);
        for (size_t k = 0; k < count_of(o); k++) {
            const hone_foreign_parameter *p = &o->parameters[k];
            const bool is_there = hone_signature_find(signature, p->ours != NULL ? p->ours : p->theirs) >= 0;
            if (is_there != (p->ours != NULL)) fail_msg("%s: %s", o->name, p->theirs);
            if ((p->is != NULL) != (p->says != NULL)) fail_msg("%s: %s says nothing", o->name, p->theirs);
        }
    }
}

// What the signature has and the row does not could never be said.
static void every_argument_of_hones_is_in_the_row(void **state)
{
    for (size_t i = 0; i < hone_foreign_operation_count; i++) {
        const hone_foreign_operation *o = &hone_foreign_operations[i];
        const hone_signature *signature = signature_of(*state, o);
        if (o->library != HONE_FOREIGN_EJKERNEL) continue; // tokamax's have no window
        for (size_t k = 0; k < hone_signature_count(signature); k++) {
            const hone_parameter *p = hone_signature_parameter(signature, k);
            if (!p->is_result && hone_foreign_parameter_find(o, NULL, p->name) == NULL)
                fail_msg("%s lacks %s", o->name, p->name);
        }
    }
}

// ejkernel's text has the parameters sorted: so do the rows.
static void parameters_of_ejkernel_are_sorted(void **state)
{
    (void)state;
    for (size_t i = 0; i < hone_foreign_operation_count; i++) {
        const hone_foreign_operation *o = &hone_foreign_operations[i];
        for (size_t k = 1; o->library == HONE_FOREIGN_EJKERNEL && k < count_of(o); k++)
            if (strcmp(o->parameters[k - 1].theirs, o->parameters[k].theirs) >= 0)
                fail_msg("%s: %s", o->name, o->parameters[k].theirs);
    }
}

static void what_callers_say_often_is_of_a_parameter_that_hone_lacks(void **state)
{
    (void)state;
    for (size_t i = 0; i < hone_foreign_operation_count; i++) {
        const hone_foreign_operation *o = &hone_foreign_operations[i];
        for (size_t k = 0; k < sizeof o->often / sizeof *o->often && o->often[k].theirs != NULL; k++) {
            const hone_foreign_parameter *p = hone_foreign_parameter_find(o, NULL, o->often[k].theirs);
            if (p == NULL || p->ours != NULL) fail_msg("%s: %s", o->name, o->often[k].theirs);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_parameter_is_one_of_hones_or_has_none),
        cmocka_unit_test(every_argument_of_hones_is_in_the_row),
        cmocka_unit_test(parameters_of_ejkernel_are_sorted),
        cmocka_unit_test(what_callers_say_often_is_of_a_parameter_that_hone_lacks),
    };
    return cmocka_run_group_tests_name("kernels_foreign", tests, open_registry, close_registry);
}
