// The plugin's own run of the same module on the same memory.
#include "launch.h"

#include "platforms/xla/loaded.h"

#include <stdio.h>

// The plugin's own calls: every buffer is made anew, or those of arguments once; the result's is given away by each
// run.
typedef struct raw_xla {
    const launch_subject *s;
    bool keeps;
    pjrt_buffer *kept[TENSORS];
} raw_xla;

static int make_buffer(const hone_xla_loaded *loaded, const launch_subject *s, uint32_t index, pjrt_buffer **out)
{
    const hone_xla_argument *argument = &loaded->arguments[index];
    pjrt_buffer_from_host arguments = {
        PJRT_HEAD(pjrt_buffer_from_host),
        .client = loaded->client->client,
        .data = s->tensors[argument->value].data,
        .type = argument->type,
        .dims = argument->dims,
        .dim_count = argument->rank,
        .semantics = argument->is_result ? PJRT_HOST_MUTABLE : PJRT_HOST_IMMUTABLE,
        .device = loaded->device,
    };
    const hone_xla_plugin *plugin = &loaded->client->plugin;
    if (hone_xla_call_quietly(plugin, PJRT_CLIENT_BUFFER_FROM_HOST, &arguments) != HONE_OK) return 1;
    hone_xla_destroy(plugin, PJRT_EVENT_DESTROY, arguments.done);
    *out = arguments.buffer;
    return 0;
}

static int execute(const hone_xla_loaded *loaded, pjrt_buffer *const buffers[TENSORS])
{
    const hone_xla_plugin *plugin = &loaded->client->plugin;
    pjrt_buffer *results[1] = {NULL};
    pjrt_buffer *const *const argument_lists[] = {buffers};
    pjrt_buffer **const output_lists[] = {results};
    pjrt_event *complete[] = {NULL};
    pjrt_execute_options options = {PJRT_HEAD(pjrt_execute_options)};
    pjrt_execute arguments = {
        PJRT_HEAD(pjrt_execute),          .loaded = loaded->loaded, .options = &options,
        .argument_lists = argument_lists, .device_count = 1,        .argument_count = loaded->argument_count,
        .output_lists = output_lists,     .complete = complete,
    };
    int failed = hone_xla_call_quietly(plugin, PJRT_LOADED_EXECUTE, &arguments) != HONE_OK;
    pjrt_one await = {PJRT_HEAD(pjrt_one), .object = complete[0]};
    if (complete[0] != NULL) failed |= hone_xla_call_quietly(plugin, PJRT_EVENT_AWAIT, &await) != HONE_OK;
    hone_xla_destroy(plugin, PJRT_EVENT_DESTROY, complete[0]);
    hone_xla_destroy(plugin, PJRT_BUFFER_DESTROY, results[0]);
    return failed;
}

static int run_xla_raw(void *ctx, uint64_t count)
{
    raw_xla *raw = ctx;
    const hone_xla_loaded *loaded = raw->s->plan->state;
    int failed = 0;
    for (uint64_t i = 0; i < count; i++) {
        pjrt_buffer *buffers[TENSORS] = {NULL};
        for (uint32_t j = 0; j < loaded->argument_count; j++) {
            const bool keeps = raw->keeps && !loaded->arguments[j].is_result;
            if (keeps && raw->kept[j] == NULL) failed |= make_buffer(loaded, raw->s, j, &raw->kept[j]);
            if (keeps)
                buffers[j] = raw->kept[j];
            else
                failed |= make_buffer(loaded, raw->s, j, &buffers[j]);
        }
        if (!failed) failed |= execute(loaded, buffers);
        for (uint32_t j = 0; j < loaded->argument_count; j++)
            if (buffers[j] != raw->kept[j]) hone_xla_destroy(&loaded->client->plugin, PJRT_BUFFER_DESTROY, buffers[j]);
    }
    return failed;
}

int launch_xla(void)
{
    static _Alignas(64) float memory[TENSORS][DIM];
    static launch_subject s;
    hone_error err = {.message = ""};
    void *const data[TENSORS] = {memory[0], memory[1], memory[2]};
    bench_row row;
    if (launch_bind(&s, HONE_XLA, (hone_device){HONE_DEVICE_CPU, 0}, data, &err) != HONE_OK) return launch_fail(&err);
    const hone_xla_loaded *loaded = s.plan->state;
    raw_xla anew = {.s = &s}, keeping = {.s = &s, .keeps = true};
    if (loaded->argument_count > TENSORS) return fprintf(stderr, "bench_launch: rms_norm takes more than it did\n"), 1;
    int failed = bench_compare((bench_side){launch_run, &s}, (bench_side){run_xla_raw, &keeping}, 0, 2e7, ROUNDS, &row);
    if (!failed) bench_print("launch/xla", "Execute of buffers that are kept", &row, "at most 2000 ns more");
    failed |= bench_compare((bench_side){launch_run, &s}, (bench_side){run_xla_raw, &anew}, 0, 2e7, ROUNDS, &row);
    if (!failed) bench_print("launch/xla, buffers made", "BufferFromHostBuffer and Execute", &row, NULL);
    for (uint32_t i = 0; i < TENSORS; i++)
        hone_xla_destroy(&loaded->client->plugin, PJRT_BUFFER_DESTROY, keeping.kept[i]);
    launch_close(&s);
    return failed;
}
