// Every kernel that is registered, on calls that its algorithm's signature allows, at configs from its space, beside
// the reference: test_kernels_walk PLATFORM [ALGORITHM]. A case for each kernel. One that no call reaches fails, so
// that none is untested; one whose library is not here is skipped; one whose hardware is not here says so and passes.
//
// The data, the guards around results, the reference and the tolerance are those of a contest (tune/worker), so that
// what is caught here is what a contest would refuse.
#include "calls.h"

#include "base/error.h"
#include "call/made_up.h"
#include "kernels/kernels.h"
#include "kernels/rivals/core.h"
#include "os/os.h"
#include "platforms/platform.h"
#include "registry/names.h"
#include "tune/worker/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 4,        // of the host, so that every machine's tests share work
    MOST_KERNELS = 256, // of a platform
    MOST_CONFIGS = 128, // of a call
    MOST_SEEN = 4096,   // configs that are looked through for extremes
    RANDOM = 3,         // configs
    TAIL_CONFIGS = 2,   // of a call with a tail: there are many such calls
    TAIL_SEEDS = 8,     // until one of them is a call that the signature allows and the kernel takes
    ATTEMPTS = 20000,   // seeds
    // A kernel of few shapes, attention of heads of 64 elements in bf16, say, is looked for longer.
    FEW_CALLS = 4,
    MOST_ATTEMPTS = 20 * ATTEMPTS
};

// The platforms with built-in kernels. CMakeLists.txt has a test for each.
static const struct plan {
    const char *name;
    hone_platform platform, devices; // whose devices its kernels are tried on
    size_t calls, configs;           // that a kernel is tried with
    size_t tail_step;                // of the calls with a tail every such one is tried
    bool is_hardware;                // the platform needs a GPU: scripts/setup cannot bring it
} plans[] = {
    {"native", HONE_NATIVE, HONE_NATIVE, 40, 8, 1, false},
    {"opencl", HONE_OPENCL, HONE_OPENCL, 8, 3, 13, false},
    {"xla", HONE_XLA, HONE_NATIVE, 8, 3, 13, false},
    {"cuda", HONE_CUDA, HONE_CUDA, 30, 6, 1, true},
};

// What the cases share. Set by main.
typedef struct walk {
    const struct plan *plan;
    hone_registry *registry;
    hone_platform_instance *instance, *host; // of the platform, and of the devices where those are another's
    bool here;                               // the platform and a device; else why says what is missing
    hone_error why;
    hone_device_info device;
    hone_session session;
    struct subject *subjects;
    size_t count;
} walk;

typedef struct subject {
    walk *walk;
    const hone_kernel_ref *ref;
    char name[128];
    bool is_here;  // lacks neither hardware nor a library
    bool walked;   // the kernels of its algorithm have run
    bool wants;    // takes part in the present calls
    bool takes_it; // and takes the present call
    size_t calls, runs, likes;
    hone_error reason;  // of the last call that did not reach it
    char failure[1536]; // the first: it runs no more
} subject;

static const char where[] = "walk";
static const hone_log silent = {0};

// A call --------------------------------------------------------------------------------------------------------------

static void put_open(hone_buffer *message, const walk *w, const hone_algorithm_entry *algorithm, const hone_call *call)
{
    hone_message_put_device(message, &w->device);
    hone_message_put_algorithm(message, algorithm, false);
    hone_message_put_call(message, call);
    hone_wire_put_text(message, hone_call_key(call));
    hone_wire_put_u8(message, HONE_WARM);
    hone_wire_put_u64(message, 1);
    hone_wire_put(message, &algorithm->algorithm.tolerance, sizeof algorithm->algorithm.tolerance);
}

static bool is_empty(const hone_call *call)
{
    for (size_t i = 0; i < hone_signature_count(hone_call_signature(call)); i++)
        if (hone_call_tensor(call, i) != NULL && hone_tensor_elements(hone_call_tensor(call, i)) == 0) return true;
    return false;
}

// Makes the call's data and computes the reference, once for all kernels. False: it is one over nothing, a mean for one,
// which is NaN.
static bool open_call(walk *w, const hone_algorithm_entry *algorithm, const hone_call *call)
{
    hone_buffer message, answer;
    hone_buffer_init(&message, hone_allocator_system());
    hone_buffer_init(&answer, hone_allocator_system());
    put_open(&message, w, algorithm, call);
    assert_int_equal(hone_session_handle(&w->session, HONE_MESSAGE_OPEN, &message, &answer), HONE_OK);
    hone_arena arena = {.allocator = hone_allocator_system()};
    hone_wire_reader reader = {answer.data, answer.size, 0, &arena, false, false};
    hone_opened opened;
    hone_message_get_opened(&reader, &opened);
    hone_arena_destroy(&arena);
    hone_buffer_deinit(&message);
    hone_buffer_deinit(&answer);
    if (opened.status == HONE_KERNEL_FAILED && is_empty(call)) return false;
    if (opened.status != HONE_OK) fail_msg("%s: the reference: %s", hone_call_text(call), opened.message);
    return true;
}

// Keeps a kernel's failure for its case.
__attribute__((format(printf, 2, 3))) static void note_failure(subject *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(s->failure, sizeof s->failure, format, arguments);
    va_end(arguments);
}

static bool has_failed(const subject *s)
{
    return s->failure[0] != '\0';
}

// Configs -------------------------------------------------------------------------------------------------------------

typedef struct picks {
    hone_config configs[MOST_CONFIGS];
    size_t count, seen;
    hone_config last, least[HONE_MAX_PARAMETERS], most[HONE_MAX_PARAMETERS];
} picks;

static bool look(void *ctx, const hone_config *config)
{
    picks *p = ctx;
    for (uint32_t i = 0; i < config->count; i++) {
        if (p->seen == 0 || config->values[i] < p->least[i].values[i]) p->least[i] = *config;
        if (p->seen == 0 || config->values[i] > p->most[i].values[i]) p->most[i] = *config;
    }
    p->last = *config;
    return ++p->seen < MOST_SEEN;
}

static void add(picks *p, const hone_config *config)
{
    assert_true(p->count < MOST_CONFIGS);
    for (size_t i = 0; i < p->count; i++)
        if (memcmp(p->configs[i].values, config->values, config->count * sizeof config->values[0]) == 0) return;
    p->configs[p->count++] = *config;
}

// The heuristic's, which the space must hold, the default, some at random, and for each parameter one with its least
// and one with its greatest value.
static void pick(subject *s, const hone_call *call, const hone_bound_space *space, picks *p)
{
    const hone_kernel *kernel = &s->ref->kernel;
    hone_error err = {0};
    hone_config config = {0}, random[RANDOM];
    size_t count = 0;
    p->count = p->seen = 0;
    if (kernel->heuristic != NULL && kernel->heuristic(kernel, call, &s->walk->device, &config)) {
        if (hone_bound_space_check(space, &config, &err) != HONE_OK)
            note_failure(s, "its heuristic for %s: %s", hone_call_text(call), err.message);
        add(p, &config);
    }
    hone_status status = hone_bound_space_default(space, &config, &err);
    if (status == HONE_NOT_FOUND) return; // nothing in the space fits this call
    if (status == HONE_OK) status = hone_bound_space_sample(space, s->calls, RANDOM, random, &count, &err);
    if (status == HONE_OK) status = hone_bound_space_enumerate(space, look, p, &err);
    if (status != HONE_OK) {
        note_failure(s, "its space for %s: %s", hone_call_text(call), err.message);
        return;
    }
    add(p, &config);
    for (size_t i = 0; i < count; i++)
        add(p, &random[i]);
    add(p, &p->last);
    for (uint32_t i = 0; i < config.count; i++) {
        add(p, &p->least[i]);
        add(p, &p->most[i]);
    }
}

// Runs ----------------------------------------------------------------------------------------------------------------

static void note_run(subject *s, const hone_call *call, const hone_config *config, const hone_error *err)
{
    char words[512];
    hone_config_text(s->ref->space, config, words, sizeof words);
    note_failure(s, "[%s] on %s: %s", words, hone_call_text(call), err->message);
}

// On the first made-up values, in place where the call allows that, and on others.
static hone_failure verify(hone_runner *runner, hone_verify_depth depth, hone_error *err)
{
    double error = 0;
    hone_failure failure = hone_runner_verify(runner, &error, err);
    if (failure == HONE_FAILURE_NONE) failure = hone_runner_verify_in_place(runner, &error, err);
    return failure == HONE_FAILURE_NONE ? hone_runner_verify_variants(runner, depth, &error, err) : failure;
}

// AddressSanitizer checks addresses, which follow from shapes, layouts and configs, not from values: there only the
// first config of a call runs on all sets of values, and the others on the first and the second made-up ones.
static hone_verify_depth depth_of(size_t index)
{
#if defined(__SANITIZE_ADDRESS__)
    return index == 0 ? HONE_FOR_WINNERS : HONE_FOR_ALL;
#else
    (void)index;
    return HONE_FOR_WINNERS;
#endif
}

static void run_config(subject *s, const hone_call *call, const hone_config *config, hone_verify_depth depth)
{
    hone_error err = {0};
    hone_runner runner;
    hone_failure failure = hone_runner_init(&runner, &s->walk->session, &s->ref->kernel, config, &err);
    if (failure == HONE_FAILURE_NONE) failure = verify(&runner, depth, &err);
    hone_runner_deinit(&runner);
    if (failure == HONE_FAILURE_NONE)
        s->runs++;
    else if (failure == HONE_FAILURE_UNSUPPORTED)
        s->reason = err;
    else
        note_run(s, call, config, &err);
}

// A call whose data is open.
static void run_configs(subject *s, const hone_call *call, size_t configs)
{
    static picks p;
    hone_error err = {0};
    hone_bound_space *space = NULL;
    if (hone_space_bind(s->ref->space, call, &s->walk->device, &space, &err) != HONE_OK) {
        note_failure(s, "its space for %s: %s", hone_call_text(call), err.message);
        return;
    }
    pick(s, call, space, &p);
    hone_bound_space_release(&space);
    if (p.count == 0) return;
    // The first always, of the others different ones for each call.
    size_t most = configs < p.count ? configs : p.count;
    for (size_t i = 0; i < most && !has_failed(s); i++)
        run_config(s, call, &p.configs[i == 0 ? 0 : 1 + (s->calls * most + i) % (p.count - 1)], depth_of(i));
    s->calls++;
}

// Cases ---------------------------------------------------------------------------------------------------------------

// What a machine may lack for a kernel, whatever the call: hardware, and what scripts/setup installs. A kernel that is
// refused for anything else fails.
static bool lacks_hardware(const subject *s, hone_error *why)
{
    const walk *w = s->walk;
    const hone_kernel *kernel = &s->ref->kernel;
    char words[256];
    if (!w->here) {
        *why = w->why;
        return w->plan->is_hardware;
    }
    if (kernel->backend == HONE_GPU && w->device.backend != HONE_GPU) {
        hone_fail(why, HONE_UNAVAILABLE, where, "it needs a GPU");
        return true;
    }
    hone_cpu_features_text(kernel->needs & ~w->device.features, ", ", words, sizeof words);
    hone_fail(why, HONE_UNAVAILABLE, where, "it needs a CPU with %s", words);
    return (kernel->needs & w->device.features) != kernel->needs;
}

// Of a kernel whose library comes with a package of Python.
static const hone_openblas *packaged_openblas(const hone_kernel *kernel)
{
    for (size_t i = 0; i < HONE_OPENBLAS_BUILDS; i++)
        if (hone_openblas_builds[i].packaged != NULL && strcmp(hone_openblas_builds[i].name, kernel->name) == 0)
            return &hone_openblas_builds[i];
    return NULL;
}

static bool lacks_library(const subject *s, hone_error *why)
{
    const hone_openblas *packaged = packaged_openblas(&s->ref->kernel);
    const char *library = s->ref->kernel.library;
    char path[1024];
    if (!s->walk->here) {
        *why = s->walk->why;
        return true;
    }
    if (packaged != NULL) return !hone_openblas_is_here(packaged, why);
    hone_fail(
        why, HONE_UNAVAILABLE, where, "it needs %s, which scripts/setup installs",
        library != NULL ? library : "libxsmm");
    if (library != NULL) return !hone_library_find(library, path, sizeof path);
    return strcmp(s->ref->kernel.name, "libxsmm") == 0 && !HONE_TEST_HAS_LIBXSMM;
}

static bool takes(subject *s, const hone_call *call)
{
    return call != NULL && hone_kernel_eligible(s->ref, call, &s->walk->device, &s->reason) == HONE_OK;
}

// The kernels of one algorithm, which stand beside each other.
typedef struct group {
    walk *walk;
    subject *subjects;
    size_t count;
} group;

// Which of those that want a call take it.
static bool offer(const group *g, const hone_call *call)
{
    bool any = false;
    for (subject *s = g->subjects; s < g->subjects + g->count; s++) {
        s->takes_it = s->wants && !has_failed(s) && takes(s, call);
        any = any || s->takes_it;
    }
    return any;
}

static void run_call(const group *g, const hone_call *call, size_t configs)
{
    if (!offer(g, call) || !open_call(g->walk, g->subjects->ref->algorithm, call)) return;
    for (subject *s = g->subjects; s < g->subjects + g->count; s++)
        if (s->takes_it) run_configs(s, call, configs);
}

// Whether a kernel still wants calls.
static bool is_any_left(const group *g)
{
    bool any = false;
    for (const subject *s = g->subjects; s < g->subjects + g->count; s++)
        any = any || (s->wants && !has_failed(s));
    return any;
}

// After `seed` seeds: kernels that have as many calls as they get want no more.
static bool want_drawn(const group *g, uint64_t seed)
{
    const size_t wanted = seed < ATTEMPTS ? g->walk->plan->calls : FEW_CALLS;
    for (subject *s = g->subjects; s < g->subjects + g->count; s++)
        s->wants = s->wants && s->calls < wanted;
    return is_any_left(g);
}

static void run_drawn(const group *g)
{
    for (uint64_t seed = 0; seed < MOST_ATTEMPTS && want_drawn(g, seed); seed++) {
        hone_call *call = call_make(g->subjects->ref->algorithm, &g->walk->device, seed);
        run_call(g, call, g->walk->plan->configs);
        hone_call_release(&call);
    }
}

// What a kernel that is not built in is tried on before it answers: hone's own pass the same, on each instruction set that
// the machine has, for each has a kernel of its own.
static void run_like(const group *g, const hone_call *like)
{
    enum { LIKES = 4, SEEDS = 12 };
    if (!offer(g, like)) return;
    for (subject *s = g->subjects; s < g->subjects + g->count; s++)
        s->wants = s->takes_it;
    for (uint64_t i = 0; i < SEEDS; i++) {
        hone_call *call = NULL;
        assert_int_equal(hone_made_up_call(hone_allocator_system(), like, i, &call), HONE_OK);
        run_call(g, call, 1);
        hone_call_release(&call);
    }
    for (subject *s = g->subjects; s < g->subjects + g->count; s++) {
        s->likes += s->wants;
        s->wants = s->is_here && s->likes < LIKES;
    }
}

static void run_made_up(const group *g)
{
    for (uint64_t seed = 0; seed < ATTEMPTS && is_any_left(g); seed++) {
        hone_call *like = call_make(g->subjects->ref->algorithm, &g->walk->device, seed);
        if (like != NULL) run_like(g, like);
        hone_call_release(&like);
    }
}

// Drawn calls seldom meet a vector's remainder in the dtype that gets it wrong.
static void run_tail(const group *g, size_t tail)
{
    for (uint64_t seed = 0; seed < TAIL_SEEDS && is_any_left(g); seed++) {
        hone_call *call = call_make_tail(g->subjects->ref->algorithm, &g->walk->device, tail, seed);
        run_call(g, call, TAIL_CONFIGS);
        for (subject *s = g->subjects; s < g->subjects + g->count; s++)
            s->wants = s->wants && !s->takes_it;
        hone_call_release(&call);
    }
}

static void want_all(const group *g)
{
    for (subject *s = g->subjects; s < g->subjects + g->count; s++)
        s->wants = s->is_here;
}

// All kernels of an algorithm, of each call those that take it: its data and its references, which take longer than
// the kernels, are made once.
static void run_group(const group *g)
{
    hone_error why;
    for (subject *s = g->subjects; s < g->subjects + g->count; s++) {
        s->walked = true;
        s->is_here = !lacks_hardware(s, &why) && !lacks_library(s, &why);
    }
    want_all(g);
    run_drawn(g);
    want_all(g);
    run_made_up(g);
    for (size_t i = 0; i < call_count_tails(g->subjects->ref->algorithm); i += g->walk->plan->tail_step) {
        want_all(g);
        run_tail(g, i);
    }
}

static group group_of(const subject *s)
{
    const walk *w = s->walk;
    group g = {.walk = s->walk, .subjects = w->subjects};
    while (g.subjects->ref->algorithm != s->ref->algorithm)
        g.subjects++;
    while (g.subjects + g.count < w->subjects + w->count && g.subjects[g.count].ref->algorithm == s->ref->algorithm)
        g.count++;
    return g;
}

// Where there is no GPU: a kernel's space can be bound to a call on one, and holds the config that its heuristic chooses.
static void choose_on_paper(subject *s)
{
    enum { CALLS = 40, SEEDS = 2 * ATTEMPTS };
    static const hone_device_info paper = {
        .struct_size = sizeof paper,
        .platform = HONE_CUDA,
        .backend = HONE_GPU,
        .device = {HONE_DEVICE_CUDA, 0},
        .name = "a GPU on paper",
        .driver = "CUDA 13.0",
        .architecture = "sm_90",
        .fingerprint = "cuda|paper",
        .threads = 1,
        .l2_bytes = 50 << 20,
        .memory_bytes = INT64_C(80) << 30,
        .smem_bytes = 232448,
        .sms = 132,
        .capability = 90,
    };
    s->walk->device = paper;
    for (uint64_t seed = 0; seed < SEEDS && s->calls < CALLS; seed++) {
        hone_error err = {0};
        hone_config chosen;
        hone_bound_space *space = NULL;
        hone_call *call = call_make(s->ref->algorithm, &paper, seed);
        if (takes(s, call)) {
            hone_status status = hone_kernel_default_config(s->ref, call, &paper, &chosen, &err);
            if (status == HONE_OK) status = hone_space_bind(s->ref->space, call, &paper, &space, &err);
            if (status == HONE_OK) status = hone_bound_space_check(space, &chosen, &err);
            if (status != HONE_OK) fail_msg("%s: %s: %s", s->name, hone_call_text(call), err.message);
            s->calls++;
        }
        hone_bound_space_release(&space);
        hone_call_release(&call);
    }
    print_message("%s: not here, chosen on paper for %zu calls: %s\n", s->name, s->calls, s->reason.message);
}

static void a_kernel_meets_its_reference_at_odd_shapes(void **state)
{
    subject *s = *state;
    if (lacks_hardware(s, &s->reason)) {
        print_message("%s: not here: %s\n", s->name, s->reason.message);
        if (s->walk->plan->is_hardware) choose_on_paper(s);
        return;
    }
    if (lacks_library(s, &s->reason)) {
        print_message("%s: %s\n", s->name, s->reason.message);
        skip();
    }
    const group g = group_of(s);
    if (!s->walked) run_group(&g);
    if (has_failed(s)) fail_msg("%s: %s", s->name, s->failure);
    print_message("%s: %zu calls, %zu runs\n", s->name, s->calls, s->runs);
    if (s->runs == 0)
        fail_msg(
            "%s: none of %d calls reached it; the last was refused: %s", s->name, MOST_ATTEMPTS, s->reason.message);
}

static void every_platform_of_a_kernel_is_walked(void **state)
{
    const walk *w = *state;
    size_t count = 0, kernels = 0;
    const hone_algorithm_entry *const *all = hone_registry_all(w->registry, &count);
    for (size_t i = 0; i < count; i++) {
        const hone_kernel_ref *const *list = hone_registry_list(all[i], &kernels);
        for (size_t k = 0; k < kernels; k++) {
            bool found = false;
            for (size_t p = 0; p < sizeof plans / sizeof *plans; p++)
                found = found || plans[p].platform == list[k]->kernel.platform;
            if (!found)
                fail_msg(
                    "%s %s is a kernel of platform %s, which has no plan in this file", all[i]->name,
                    list[k]->kernel.name, hone_platform_name(list[k]->kernel.platform));
        }
    }
}

// Set-up --------------------------------------------------------------------------------------------------------------

static hone_status open_platform(hone_platform platform, hone_platform_instance **out, hone_error *err)
{
    const hone_allocator system = hone_allocator_system();
    return hone_platform_ops_of(platform)->open(&system, &silent, out, err);
}

static hone_status find_device(walk *w)
{
    hone_platform_instance *instance = w->host != NULL ? w->host : w->instance;
    size_t count = 0;
    const hone_device_info *devices = hone_platform_ops_of(w->plan->devices)->devices(instance, &count);
    if (count == 0) return hone_fail(&w->why, HONE_UNAVAILABLE, where, "%s has no device here", w->plan->name);
    w->device = devices[0];
    if (w->plan->devices == HONE_NATIVE) w->device.threads = THREADS;
    const hone_platform_ops *ops = hone_platform_ops_of(w->plan->platform);
    return ops->visits != NULL ? ops->visits(w->instance, &w->device, &w->why) : HONE_OK;
}

static void look_around(walk *w)
{
    hone_status status = open_platform(w->plan->platform, &w->instance, &w->why);
    if (status == HONE_OK && w->plan->devices != w->plan->platform)
        status = open_platform(w->plan->devices, &w->host, &w->why);
    w->here = status == HONE_OK && find_device(w) == HONE_OK;
}

// algorithm NULL: of all.
static void list_subjects(walk *w, const char *algorithm)
{
    size_t count = 0, kernels = 0;
    const hone_algorithm_entry *const *all = hone_registry_all(w->registry, &count);
    for (size_t i = 0; i < count; i++) {
        if (algorithm != NULL && strcmp(all[i]->name, algorithm) != 0) continue;
        const hone_kernel_ref *const *list = hone_registry_list(all[i], &kernels);
        for (size_t k = 0; k < kernels && w->count < MOST_KERNELS; k++) {
            if (list[k]->kernel.platform != w->plan->platform) continue;
            subject *s = &w->subjects[w->count++];
            *s = (subject){.walk = w, .ref = list[k]};
            snprintf(
                s->name, sizeof s->name, "%s_%s_on_%s", all[i]->name, list[k]->kernel.name,
                hone_backend_name(list[k]->kernel.backend));
        }
    }
}

static int walk_init(walk *w, const char *platform, const char *algorithm)
{
    const hone_allocator system = hone_allocator_system();
    const uint32_t backends = 1u << HONE_CPU | 1u << HONE_GPU;
    for (size_t i = 0; platform != NULL && i < sizeof plans / sizeof *plans; i++)
        if (strcmp(plans[i].name, platform) == 0) w->plan = &plans[i];
    hone_status status = HONE_INVALID_ARGUMENT;
    if (w->plan == NULL) hone_fail(&w->why, status, where, "expected a platform: native, opencl, xla or cuda");
    if (w->plan != NULL) status = hone_registry_create(&system, hone_platform_facts_of, NULL, &w->registry, &w->why);
    if (status == HONE_OK) hone_registry_set_hardware(w->registry, backends, HONE_CPU, UINT64_MAX);
    if (status == HONE_OK) status = hone_kernels_register(w->registry, &w->why);
    if (status == HONE_OK) status = hone_registry_load(w->registry, &w->why);
    if (status == HONE_OK) {
        hone_session_init(&w->session, system, &(hone_kernel_reader){.registry = w->registry}, NULL);
        look_around(w);
        list_subjects(w, algorithm);
        if (w->count > 0) return 0;
        hone_fail(
            &w->why, HONE_NOT_FOUND, where, "no kernel of %s on %s", algorithm != NULL ? algorithm : "any", platform);
    }
    fprintf(stderr, "%s\n", w->why.message);
    return 2;
}

static void walk_deinit(walk *w)
{
    hone_session_deinit(&w->session);
    if (w->instance != NULL) hone_platform_ops_of(w->plan->platform)->close(&w->instance);
    if (w->host != NULL) hone_platform_ops_of(w->plan->devices)->close(&w->host);
    hone_registry_destroy(&w->registry);
}

int main(int argc, char **argv)
{
    static subject subjects[MOST_KERNELS];
    static struct CMUnitTest tests[MOST_KERNELS + 1];
    static walk w = {.subjects = subjects};
    int status = walk_init(&w, argc > 1 ? argv[1] : NULL, argc > 2 ? argv[2] : NULL);
    if (status != 0) return status;
    for (size_t i = 0; i < w.count; i++)
        tests[i] = (struct CMUnitTest){
            .name = subjects[i].name,
            .test_func = a_kernel_meets_its_reference_at_odd_shapes,
            .initial_state = &subjects[i]};
    tests[w.count] = (struct CMUnitTest){
        .name = "every_platform_of_a_kernel_is_walked",
        .test_func = every_platform_of_a_kernel_is_walked,
        .initial_state = &w};
    status = _cmocka_run_group_tests(w.plan->name, tests, w.count + 1, NULL, NULL);
    walk_deinit(&w);
    return status;
}
