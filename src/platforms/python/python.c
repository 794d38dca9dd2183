// The platform: checks of its packs, and plans that the lent interpreter runs.
#include "platforms/python/python.h"

#include "base/error.h"
#include "base/memory.h"
#include "call/call.h"
#include "platforms/interpreter.h"
#include "platforms/shared/packages.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

enum { CONFIG_SIZE = 4096, FILE_END = 3, WORDS_SIZE = 256 };

static const char where[] = "python.prepare";

// What was lent ---------------------------------------------------------------------------------------------------------

static _Atomic(const hone_interpreter *) lent;

hone_status hone_interpreter_lend(const hone_interpreter *interpreter, hone_error *err)
{
    if (interpreter == NULL || interpreter->struct_size < offsetof(hone_interpreter, start) ||
        interpreter->prepare == NULL || interpreter->release == NULL || interpreter->run == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "interpreter.lend", "the interpreter needs prepare, release and run");
    atomic_store(&lent, interpreter);
    if (interpreter->struct_size >= sizeof *interpreter) hone_packages_lend(interpreter->packages);
    return HONE_OK;
}

const char *const *hone_interpreter_worker(void)
{
    const hone_interpreter *interpreter = atomic_load(&lent);
    return interpreter != NULL ? interpreter->worker : NULL;
}

void hone_interpreter_start(void)
{
    const hone_interpreter *interpreter = atomic_load(&lent);
    if (interpreter != NULL && interpreter->struct_size >= offsetof(hone_interpreter, watch) &&
        interpreter->start != NULL)
        interpreter->start();
}

bool hone_interpreter_watch(hone_interpreter_stage stage, char *words, size_t size)
{
    const hone_interpreter *interpreter = atomic_load(&lent);
    return interpreter != NULL && interpreter->struct_size >= offsetof(hone_interpreter, packages) &&
           interpreter->watch != NULL && interpreter->watch(stage, words, size);
}

static hone_status fail_missing(hone_error *err)
{
    return hone_fail(
        err, HONE_UNAVAILABLE, where,
        "this process runs no Python: its functions run where the package hone is imported");
}

// The instance ----------------------------------------------------------------------------------------------------------

struct hone_platform_instance {
    hone_allocator allocator;
};

static hone_status open(
    const hone_allocator *allocator, const hone_log *log, hone_platform_instance **out, hone_error *err)
{
    (void)log;
    if (atomic_load(&lent) == NULL) return fail_missing(err);
    hone_platform_instance *instance = hone_alloc(allocator, sizeof *instance);
    if (instance == NULL) return hone_fail_memory(err, where);
    instance->allocator = *allocator;
    *out = instance;
    return HONE_OK;
}

static void close(hone_platform_instance **instance)
{
    hone_platform_instance *gone = *instance;
    if (gone == NULL) return;
    *instance = NULL;
    const hone_allocator allocator = gone->allocator;
    hone_free(&allocator, gone);
}

static const hone_device_info *devices(hone_platform_instance *instance, size_t *out_count)
{
    (void)instance;
    *out_count = 0;
    return NULL;
}

static hone_status visits(hone_platform_instance *instance, const hone_device_info *device, hone_error *err)
{
    (void)instance, (void)device, (void)err;
    return HONE_OK;
}

static void describe(hone_platform_instance *instance, hone_buffer *out)
{
    const hone_interpreter *interpreter = atomic_load(&lent);
    (void)instance;
    hone_buffer_text(out, interpreter != NULL && interpreter->name != NULL ? interpreter->name : "no interpreter");
}

// Plans -----------------------------------------------------------------------------------------------------------------

typedef struct loaded {
    const hone_interpreter *interpreter;
    void *state;
    size_t count;                       // of values
    hone_value values[HONE_MAX_VALUES]; // scalars, as the call has them
    bool brought[HONE_MAX_VALUES];      // provided by each run: tensors, and scalars that the key ignores
} loaded;

static void write_config(const hone_plan *plan, hone_buffer *out)
{
    const hone_space *space = plan->kernel->code->pack->space;
    hone_config config = {.count = (uint32_t)hone_space_parameters(space)};
    char text[CONFIG_SIZE];
    for (uint32_t i = 0; i < config.count; i++)
        config.values[i] = plan->config[i];
    hone_buffer_text(out, hone_config_json(space, &config, text, sizeof text) < sizeof text ? text : "{}");
}

static void fill_values(const hone_plan *plan, loaded *made)
{
    const hone_signature *signature = hone_call_signature(plan->call);
    const hone_value *values = hone_call_values(plan->call);
    made->count = hone_signature_count(signature);
    for (size_t i = 0; i < made->count; i++) {
        const hone_parameter *parameter = hone_signature_parameter(signature, i);
        const bool is_tensor = values[i].tag == HONE_VALUE_TENSOR;
        made->values[i] = values[i];
        made->brought[i] = is_tensor || parameter->is_result || parameter->role == HONE_ROLE_IGNORE;
    }
}

static hone_status ask_interpreter(const hone_plan *plan, loaded *made, hone_error *err)
{
    const hone_pack_variant *variant = hone_pack_variant_of(plan->kernel->code->pack, plan->config);
    hone_buffer source, config;
    hone_buffer_init(&source, hone_allocator_system());
    hone_buffer_init(&config, hone_allocator_system());
    hone_status status = hone_pack_read_file(variant->file, &source, err);
    if (status == HONE_OK) write_config(plan, &config);
    if (status == HONE_OK && config.failed) status = hone_fail_memory(err, where);
    if (status == HONE_OK) {
        const hone_script script = {
            .struct_size = sizeof script,
            .path = variant->file->path,
            .sha256 = variant->file->sha256,
            .source = hone_buffer_string(&source),
            .source_size = source.size,
            .entry = variant->code.entry,
            .facts = variant->facts,
            .config = hone_buffer_string(&config),
            .is_reference = plan->kernel->is_reference,
            .call = plan->call,
            .device = plan->device,
        };
        status = made->interpreter->prepare(&script, &made->state, err);
    }
    hone_buffer_deinit(&source);
    hone_buffer_deinit(&config);
    return status;
}

static hone_status prepare(
    hone_platform_instance *instance,
    const hone_plan *plan,
    void **out_state,
    size_t *out_scratch_bytes,
    hone_error *err)
{
    const hone_kernel *kernel = plan->kernel;
    const hone_allocator system = hone_allocator_system();
    (void)instance;
    *out_state = NULL;
    *out_scratch_bytes = 0;
    if (kernel->code == NULL)
        return kernel->prepare == NULL ? HONE_OK : kernel->prepare(plan, out_state, out_scratch_bytes, err);
    if (atomic_load(&lent) == NULL) return fail_missing(err);
    loaded *made = hone_alloc(&system, sizeof *made);
    if (made == NULL) return hone_fail_memory(err, where);
    memset(made, 0, sizeof *made);
    made->interpreter = atomic_load(&lent);
    fill_values(plan, made);
    hone_status status = ask_interpreter(plan, made, err);
    if (status == HONE_OK)
        *out_state = made;
    else
        hone_free(&system, made);
    return status;
}

static void release(hone_platform_instance *instance, const hone_kernel *kernel, void *state)
{
    const hone_allocator system = hone_allocator_system();
    loaded *made = state;
    (void)instance;
    if (kernel->code == NULL) {
        if (kernel->release != NULL) kernel->release(kernel, state);
        return;
    }
    made->interpreter->release(made->state);
    hone_free(&system, made);
}

static hone_status run(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const loaded *made = plan->state;
    hone_value values[HONE_MAX_VALUES];
    char words[256] = "";
    for (size_t i = 0; i < made->count; i++)
        values[i] = made->brought[i] ? args[i] : made->values[i];
    hone_status status = made->interpreter->run(made->state, values, made->count, execution, words, sizeof words);
    return status == HONE_OK || words[0] == '\0' ? status : hone_plan_fail(plan, status, words);
}

// Packs -----------------------------------------------------------------------------------------------------------------

static hone_status check(const hone_pack_kernel *kernel, const hone_pack_variant *variant, hone_error *err)
{
    static const char where_check[] = "python.pack";
    const hone_code *code = &variant->code;
    const struct {
        const char *name, *text;
    } fields[] = {{"grid", code->grid},       {"block", code->block},         {"cluster", code->cluster},
                  {"shared", code->shared},   {"options", code->options},     {"constants", code->constants},
                  {"scratch", code->scratch}, {"arguments", code->arguments}, {"target", code->target}};
    if (variant->file == NULL || strlen(variant->file->name) < 4 ||
        strcmp(variant->file->name + strlen(variant->file->name) - 3, ".py") != 0)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where_check, "file: expected a source of Python (.py)");
    if (code->entry == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where_check, "entry: is missing: the function's name");
    if (kernel->backend == HONE_TPU || kernel->backend == HONE_MPS)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where_check, "backend: is cpu, gpu or any");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].text != NULL)
            return hone_fail(
                err, HONE_INVALID_ARGUMENT, where_check, "%s: a function of Python has none", fields[i].name);
    return HONE_OK;
}

const hone_platform_ops hone_python_platform = {
    .struct_size = sizeof(hone_platform_ops),
    .facts = {.platform = HONE_PYTHON, .name = "python", .hosts = {HONE_NATIVE, HONE_CUDA}, .is_interpreted = true},
    .open = open,
    .close = close,
    .devices = devices,
    .prepare = prepare,
    .release = release,
    .run = run,
    .visits = visits,
    .starts_runs = true,
    .describe = describe,
    .check = check,
    .stands_alone = true,
};
