// Finds the configs that are tried first: the best ones that the stores have for similar calls of other shapes, devices
// and versions. Each neighbour is a source of its own, so that a search can drop one that misleads.
#include "tune/contest/field.h"

#include "base/error.h"
#include "transfer/transfer.h"

#include <string.h>

static const char where[] = "tune.priors";

static hone_contestant *find_contestant(const hone_field *field, const char *kernel)
{
    for (size_t i = 0; i < field->count; i++)
        if (field->contestants[i].space != NULL && strcmp(field->contestants[i].ref->kernel.name, kernel) == 0)
            return &field->contestants[i];
    return NULL;
}

static bool read_config(const hone_contestant *contestant, const char *json, hone_config *out)
{
    return hone_config_from_json(contestant->ref->space, json, strlen(json), out, NULL) == HONE_OK;
}

static bool admits(void *ctx, const char *kernel, const char *config, const char *revision)
{
    hone_config read;
    const hone_contestant *contestant = find_contestant(ctx, kernel);
    if (contestant == NULL || (revision != NULL && strcmp(revision, contestant->ref->kernel.revision) != 0))
        return false;
    return read_config(contestant, config, &read) && hone_bound_space_check(contestant->space, &read, NULL) == HONE_OK;
}

// Adds the configs of one kernel, neighbour by neighbour.
static void fill(const hone_field *field, hone_contestant *contestant, const hone_transfer_answer *answer, size_t *used)
{
    hone_search_prior *first = field->priors + *used;
    for (size_t i = 0; i < answer->neighbour_count; i++) {
        const hone_transfer_neighbour *neighbour = &answer->neighbours[i];
        for (size_t j = 0; j < neighbour->count; j++) {
            const hone_transfer_choice *choice = &neighbour->choices[j];
            hone_search_prior *prior = field->priors + *used;
            if (find_contestant(field, choice->kernel) != contestant) continue;
            if (!read_config(contestant, choice->config, &prior->config)) continue;
            prior->relative = choice->relative;
            prior->distance = neighbour->distance;
            prior->source = (uint32_t)i;
            ++*used;
        }
    }
    contestant->priors = first;
    contestant->prior_count = (size_t)(field->priors + *used - first);
}

static hone_status take(
    hone_field *field, const hone_allocator *allocator, const hone_transfer_answer *answer, hone_error *err)
{
    size_t used = 0;
    if (answer->neighbour_count == 0) return HONE_OK;
    field->priors =
        hone_alloc_array(allocator, answer->neighbour_count * HONE_TRANSFER_CHOICES + 1, sizeof *field->priors);
    if (field->priors == NULL) return hone_fail_memory(err, where);
    for (size_t i = 0; i < field->count; i++)
        if (field->contestants[i].space != NULL) fill(field, &field->contestants[i], answer, &used);
    return HONE_OK;
}

hone_status hone_field_find_priors(hone_field *field, const hone_question *question, hone_error *err)
{
    const hone_tune_environment *environment = question->environment;
    hone_transfer *transfer = NULL;
    hone_transfer_answer answer;
    hone_error why = {0};
    if (environment->store == NULL && environment->system_store == NULL) return HONE_OK;
    // Measurements of the call itself are resumed, so only others are asked for.
    const hone_transfer_question asked = {
        .key = question->key,
        .regime = question->options.regime,
        .others_only = true,
        .admits = admits,
        .admits_ctx = field,
    };
    hone_status status = hone_transfer_create(&environment->allocator, 0, &transfer, &why);
    if (status == HONE_OK)
        status = hone_transfer_find(transfer, environment->store, environment->system_store, &asked, &answer, &why);
    if (status == HONE_OK) {
        status = take(field, &environment->allocator, &answer, err);
        hone_transfer_answer_deinit(&answer);
    } else if (status == HONE_OUT_OF_MEMORY) {
        hone_fail_memory(err, where);
    } else {
        hone_log_write(environment->log, HONE_LOG_WARNING, "near calls cannot be read: %s", why.message);
        status = HONE_OK;
    }
    hone_transfer_destroy(&transfer);
    return status;
}
