#include "tune/worker/side_effects.h"

#include "base/error.h"
#include "os/limits.h"
#include "platforms/interpreter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The method: what the process holds (heap, mapped memory, descriptors, threads) is read between equal pieces of a
// candidate's work. A leak grows in every piece, a cache fills once. What grew in two pieces is suspected, and the
// candidate runs on, twice as long again and again (hone_pursue_leak). What does not grow in one of these pieces is
// acquitted; where there is little time, so is what does not grow evenly.
//
// Growth in so many intervals may be a leak. It may also be a cache that fills: the C library keeps up to seven freed
// pieces of each size for each thread and counts them as in use, and a runtime's threads get theirs one after another.
// A leak takes such pieces first, and does not grow meanwhile.
enum { SUSPECT_INTERVALS = 2 };

// Pause between two checks: a pool that was told to rest sleeps after some us, a library's threads after a while.
static const uint64_t first_look_ns = 20 * 1000, look_ns = 500 * 1000;
// Some libraries let their threads spin for 200 ms after their work. The limit is processor time: on a busy machine a
// thread that is about to sleep may wait longer than that for its turn.
static const uint64_t rest_ns = 250 * 1000 * 1000, most_rest_ns = UINT64_C(5) * 1000 * 1000 * 1000;
// How long the process must be idle, ordinarily and for a candidate that may win. Threads at rest may use 1 /
// IDLE_SHARE of that time.
static const uint64_t watch_ns = 1000 * 1000, long_watch_ns = 20 * 1000 * 1000;
enum { IDLE_SHARE = 10 };
static const double clock_slack = 1e-3;
// Largest ratio between a leak's growth per run in one interval and the next. In the first interval it still takes
// pieces that were kept.
static const double even = 2;
static const uint64_t bloated_bytes = 256u << 20;

static const char where[] = "tune.side_effects";

static const struct {
    const char *what, *unit;
    uint64_t least; // the least growth per run that counts
    uint64_t least_interpreted;
} held[HONE_HELD_COUNT] = {
    // An interpreter frees now and then what it no longer needs, and keeps memory for what it makes next.
    [HONE_HELD_HEAP] = {"memory that it does not free", " bytes", 8, 4096},
    [HONE_HELD_MAPPED] = {"memory that it mapped", " bytes", 4096, 65536},
    [HONE_HELD_DESCRIPTORS] = {"open files", "", 1, 1},
    [HONE_HELD_THREADS] = {"threads", "", 1, 1},
    [HONE_HELD_KEYS] = {"keys for thread-local data", "", 1, 1},
};

// The least growth that counts, for so many runs.
static uint64_t least_growth(const hone_side_effects *effects, int what, uint32_t runs)
{
    const bool is_memory = what == HONE_HELD_HEAP || what == HONE_HELD_MAPPED;
    // In so many runs a leak that occurs in one of thousands grows less: it counts with as much memory as a few bytes
    // in each run, or with one file.
    if (effects->slow && !effects->interpreted) return is_memory ? held[HONE_HELD_HEAP].least * runs : 1;
    return (effects->interpreted ? held[what].least_interpreted : held[what].least) * runs;
}

void hone_side_effects_init(hone_side_effects *effects, bool shared, bool driven)
{
    hone_os_holdings now;
    memset(effects, 0, sizeof *effects);
    effects->shared = shared;
    effects->driven = driven;
    hone_os_state_read(&effects->before);
    hone_os_holdings_read(&now);
    effects->resident = now.amounts[HONE_HELD_RESIDENT];
}

void hone_side_effects_begin(hone_side_effects *effects)
{
    effects->looked = false;
    effects->lingers = effects->is_known = false;
    effects->is_whole = !effects->shared && hone_os_heap_is_whole();
    hone_side_effects_acquit(effects);
    effects->true_before_ns = hone_os_true_now_ns();
    effects->clock_ns = hone_os_now_ns();
    effects->true_after_ns = hone_os_true_now_ns();
    hone_os_thread_mode_save(&effects->mode);
    if (effects->shared) hone_os_state_read(&effects->before);
    if (!effects->shared) (void)hone_interpreter_watch(HONE_INTERPRETER_BEGINS, NULL, 0);
}

void hone_side_effects_prepared(hone_side_effects *effects)
{
    hone_os_state_adopt_loading(&effects->before);
    if (!effects->shared) (void)hone_interpreter_watch(HONE_INTERPRETER_PREPARED, NULL, 0);
}

void hone_side_effects_begun(const hone_side_effects *effects)
{
    (void)hone_os_thread_come_back(&effects->mode);
}

void hone_side_effects_look(hone_side_effects *effects, uint32_t runs)
{
    hone_os_holdings now;
    if (effects->shared) return;
    hone_os_holdings_read(&now);
    if (effects->looked)
        for (int i = 0; i < HONE_HELD_COUNT; i++)
            if (held[i].what != NULL && now.amounts[i] >= effects->last.amounts[i] + least_growth(effects, i, runs))
                effects->grown[i]++;
    effects->last = now;
    effects->looked = true;
}

bool hone_side_effects_suspects(const hone_side_effects *effects)
{
    for (int i = 0; i < HONE_HELD_COUNT; i++)
        if (effects->grown[i] >= SUSPECT_INTERVALS) return true;
    return false;
}

static void compare_rates(hone_side_effects *effects, int what, double rate)
{
    const double last = effects->rates[what];
    effects->uneven[what] = effects->uneven[what] || (last > 0 && (rate > even * last || last > even * rate));
    effects->rates[what] = rate;
}

void hone_side_effects_look_again(hone_side_effects *effects, uint32_t runs)
{
    hone_os_holdings now;
    hone_os_holdings_read(&now);
    for (int i = 0; i < HONE_HELD_COUNT; i++) {
        const double growth = (double)now.amounts[i] - (double)effects->last.amounts[i];
        if (growth < (double)least_growth(effects, i, runs))
            effects->grown[i] = 0;
        else if (runs > 0)
            compare_rates(effects, i, growth / runs);
    }
    effects->last = now;
}

void hone_side_effects_suspect_all(hone_side_effects *effects)
{
    hone_side_effects_acquit(effects);
    effects->slow = true;
    for (int i = 0; i < HONE_HELD_COUNT; i++)
        if (held[i].what != NULL) effects->grown[i] = SUSPECT_INTERVALS;
    hone_os_holdings_read(&effects->last);
}

void hone_side_effects_acquit(hone_side_effects *effects)
{
    effects->slow = false;
    memset(effects->grown, 0, sizeof effects->grown);
    memset(effects->rates, 0, sizeof effects->rates);
    memset(effects->uneven, 0, sizeof effects->uneven);
}

void hone_side_effects_acquit_uneven(hone_side_effects *effects)
{
    for (int i = 0; i < HONE_HELD_COUNT; i++)
        if (effects->uneven[i]) effects->grown[i] = 0;
}

hone_failure hone_side_effects_compare(const hone_side_effects *effects, hone_error *err)
{
    hone_os_state before = effects->before, now;
    hone_os_state_read(&now);
    // A Python function is compiled at its first run of a shape, and LLVM sets handlers then.
    if (effects->interpreted) hone_os_state_adopt_loading(&before);
    const char *changed = hone_os_state_changed(&before, &now, effects->shared);
    if (changed == NULL) return HONE_FAILURE_NONE;
    hone_fail(err, HONE_KERNEL_FAILED, where, "changes %s of its process", changed);
    return HONE_FAILURE_TRACES;
}

static hone_failure find_leak(const hone_side_effects *effects, hone_error *err)
{
    for (int i = 0; i < HONE_HELD_COUNT; i++) {
        if (effects->grown[i] < SUSPECT_INTERVALS) continue;
        char each[48] = "";
        if (effects->rates[i] > 0) snprintf(each, sizeof each, " (%.0f%s)", ceil(effects->rates[i]), held[i].unit);
        hone_fail(err, HONE_KERNEL_FAILED, where, "leaves %s behind with every run%s", held[i].what, each);
        return HONE_FAILURE_TRACES;
    }
    return HONE_FAILURE_NONE;
}

static hone_failure compare_pool(const hone_pool *pool, hone_error *err)
{
    if (pool == NULL || !hone_pool_changed_worker(pool)) return HONE_FAILURE_NONE;
    hone_fail(
        err, HONE_KERNEL_FAILED, where,
        "changes the floating-point mode, x87 registers, signal mask, priority or processors of a thread that it was "
        "lent");
    return HONE_FAILURE_TRACES;
}

// If users request it, OpenMP binds the thread that calls it with its first work, and again later.
static bool binds_by_openmp(void)
{
    return getenv("OMP_PROC_BIND") != NULL || getenv("GOMP_CPU_AFFINITY") != NULL || getenv("KMP_AFFINITY") != NULL;
}

static hone_failure compare_processors(const hone_side_effects *effects, hone_error *err)
{
    if (!hone_os_thread_come_back(&effects->mode) || effects->shared || binds_by_openmp()) return HONE_FAILURE_NONE;
    hone_fail(err, HONE_KERNEL_FAILED, where, "binds the thread that it is called in to other processors");
    return HONE_FAILURE_TRACES;
}

// Processor time of other threads, and of processes that it left behind and that are no longer children of this one.
static uint64_t spent_elsewhere(hone_os_orphans *out_orphans)
{
    return hone_os_orphans_ns(out_orphans) + hone_os_others_ns();
}

// Number of threads or processes that still work. A thread that sleeps now and then is not seen running in every check,
// so the processor time of all of them is measured while the process is idle. A thread that works only after a pause
// harms the next candidate as much. Kernels of the library are exempt: their tests check this, and a millisecond is a
// third of the time of a candidate with short runs.
static int count_restless(const hone_side_effects *effects, uint64_t watch)
{
    hone_os_orphans orphans;
    const int running = hone_os_others_run();
    if (running > 0 || effects->is_known) return running;
    const uint64_t start = hone_os_now_ns(), spent = spent_elsewhere(&orphans);
    // On a busy machine one that is ready may get no processor all the while.
    if (orphans.running > 0) return orphans.running;
    if (hone_os_thread_count() == 1 && orphans.count == 0) return running;
    hone_os_sleep_ns(watch);
    return spent_elsewhere(&orphans) > spent + (hone_os_now_ns() - start) / IDLE_SHARE;
}

static hone_failure await_rest(const hone_side_effects *effects, hone_error *err)
{
    hone_os_orphans orphans;
    const uint64_t until = hone_os_now_ns() + most_rest_ns, spent = spent_elsewhere(&orphans);
    uint64_t allowed = 0, pause = first_look_ns, watch = effects->lingers ? long_watch_ns : watch_ns;
    for (int running; (running = count_restless(effects, watch)) > 0; hone_os_sleep_ns(pause)) {
        if (pause < look_ns) pause *= 2;
        if (allowed < rest_ns * (uint64_t)running) allowed = rest_ns * (uint64_t)running;
        if (spent_elsewhere(&orphans) <= spent + allowed && hone_os_now_ns() <= until) continue;
        hone_fail(
            err, HONE_KERNEL_FAILED, where, "leaves a %s behind that goes on running",
            orphans.count > 0 ? "process" : "thread");
        return HONE_FAILURE_TRACES;
    }
    return HONE_FAILURE_NONE;
}

// A clock that was slowed makes all candidates after the one that slowed it seem fast, which itself need not have been.
static hone_failure compare_clocks(const hone_side_effects *effects, hone_error *err)
{
    const double least = (double)(hone_os_true_now_ns() - effects->true_after_ns);
    const double came = (double)hone_os_now_ns() - (double)effects->clock_ns;
    const double most = (double)(hone_os_true_now_ns() - effects->true_before_ns);
    if (came >= (1 - clock_slack) * least && came <= (1 + clock_slack) * most) return HONE_FAILURE_NONE;
    hone_fail(err, HONE_KERNEL_FAILED, where, "its process's clock is not the system's any more");
    return HONE_FAILURE_HIDDEN;
}

// Finds a changed setting or function of the interpreter: a candidate that slows down numpy's sine wins by that.
static hone_failure compare_interpreter(hone_error *err)
{
    char words[256] = "";
    if (!hone_interpreter_watch(HONE_INTERPRETER_ENDS, words, sizeof words)) return HONE_FAILURE_NONE;
    hone_fail(err, HONE_KERNEL_FAILED, where, "changes %s of its interpreter", words);
    return HONE_FAILURE_TRACES;
}

static hone_failure compare_heap(const hone_side_effects *effects, hone_error *err)
{
    if (!effects->is_whole || hone_os_heap_is_whole()) return HONE_FAILURE_NONE;
    hone_fail(err, HONE_KERNEL_FAILED, where, "writes past the end of memory that it allocated: the heap is broken");
    return HONE_FAILURE_BOUNDS;
}

hone_failure hone_side_effects_end(hone_side_effects *effects, hone_pool *pool, hone_error *err)
{
    hone_failure failure = compare_heap(effects, err);
    if (failure == HONE_FAILURE_NONE) failure = compare_clocks(effects, err);
    const hone_failure interpreted =
        effects->shared ? HONE_FAILURE_NONE : compare_interpreter(failure == HONE_FAILURE_NONE ? err : NULL);
    if (failure == HONE_FAILURE_NONE) failure = interpreted;
    if (failure == HONE_FAILURE_NONE) failure = hone_side_effects_compare(effects, err);
    if (failure == HONE_FAILURE_NONE) failure = compare_processors(effects, err);
    hone_os_thread_mode_restore(&effects->mode);
    if (failure == HONE_FAILURE_NONE) failure = find_leak(effects, err);
    if (!effects->shared) hone_pool_rest(pool);
    if (failure == HONE_FAILURE_NONE && !effects->shared) failure = compare_pool(pool, err);
    if (failure == HONE_FAILURE_NONE && !effects->shared && !effects->driven) failure = await_rest(effects, err);
    return failure;
}

// A device's libraries load hundreds of megabytes of code when it is first needed, and a new process would load it
// again.
static uint64_t most_growth(const hone_side_effects *effects)
{
    int64_t eighth = effects->driven ? hone_os_memory_bytes() / 8 : 0;
    return eighth > (int64_t)bloated_bytes ? (uint64_t)eighth : bloated_bytes;
}

bool hone_side_effects_bloated(const hone_side_effects *effects)
{
    hone_os_holdings now;
    if (effects->shared) return false;
    hone_os_holdings_read(&now);
    return now.amounts[HONE_HELD_RESIDENT] > effects->resident + most_growth(effects);
}
