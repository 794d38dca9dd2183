// Transfer between shapes, on a table of convolutions with the times of their kernels: each row in turn is taken out,
// asked for by its neighbours' kernels, and what these take there is what the choice is worth. A second figure is what
// asking costs.
//   bench_transfer [TABLE [BOUND]]   "-": standard input; without a table the cost is measured. Leaves with 1 when the best
//                                    of the first 3 is worse than BOUND.
//
// A row of a table, as MIOpen's find database has it:
//   CHANNELS-HEIGHT-WIDTH-KHxKW-FILTERS-OUTHEIGHT-OUTWIDTH-BATCH-PAD-STRIDE-DILATION-0-LAYOUT-DTYPE-DIRECTION[_gGROUPS]=KERNEL:MS,...;...
#include "transfer/transfer.h"
#include "bench.h"
#include "folder.h"
#include "store/records.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    LINE = 8192,
    KERNELS = 16,
    MEASURED = 3,
    SPEC = 1024,
    STORED = 10000,
    CONFIGS = 40,
    MOST = 2000,
    QUESTIONS = 200,
    FIRSTS = 21
};

typedef struct kernel {
    char *name;
    double ms;
} kernel;

typedef struct row {
    char algorithm[32], key[20], *spec;
    kernel kernels[KERNELS];
    int count;
} row;

typedef struct table {
    row *rows;
    size_t count, capacity;
} table;

static void fail(const char *what, const hone_error *err)
{
    fprintf(stderr, "bench_transfer: %s%s%s\n", what, err == NULL ? "" : ": ", err == NULL ? "" : err->message);
    exit(1);
}

// Reading -------------------------------------------------------------------------------------------------------------

// "256-13-13-1x1-512-13-13-16-0x0-1x1-1x1-0-NCHW-FP16-F_g32": every size, the layout whole, dtype, direction.
static void write_spec(char *name, char out[SPEC], char direction[4])
{
    double d[16] = {0};
    char layout[48] = "", dtype[8] = "";
    int count = 0, groups = 1;
    char *mark = strstr(name, "_g");
    if (mark != NULL) {
        groups = atoi(mark + 2);
        *mark = '\0';
    }
    for (char *part = strtok(name, "-"); part != NULL; part = strtok(NULL, "-")) {
        if (part[0] >= '0' && part[0] <= '9') {
            for (char *at = part; at != NULL && count < 16; at = strchr(at, 'x')) {
                at += *at == 'x';
                d[count++] = strtod(at, &at);
            }
        } else if (strncmp(part, "FP", 2) == 0) {
            snprintf(dtype, sizeof dtype, "%s", part);
        } else if (dtype[0] == '\0') {
            snprintf(layout + strlen(layout), sizeof layout - strlen(layout), "%s", part);
        } else {
            snprintf(direction, 4, "%.3s", part);
        }
    }
    // c h w | kh kw | k oh ow | n | pad pad | stride stride | dilation dilation
    snprintf(
        out, SPEC,
        "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{\"dilation_h\":%.0f,\"dilation_w\":%.0f,\"groups\":%d,"
        "\"input\":{\"dtype\":\"%s\",\"shape\":[%.0f,%.0f,%.0f,%.0f]},\"layout\":\"%s\","
        "\"output\":{\"dtype\":\"%s\",\"shape\":[%.0f,%.0f,%.0f,%.0f]},\"pad_h\":%.0f,\"pad_w\":%.0f,"
        "\"stride_h\":%.0f,\"stride_w\":%.0f,\"weight\":{\"dtype\":\"%s\",\"shape\":[%.0f,%.0f,%.0f,%.0f]}},"
        "\"method\":null}",
        d[13], d[14], groups, dtype, d[8], d[0], d[1], d[2], layout, dtype, d[8], d[5], d[6], d[7], d[9], d[10], d[11],
        d[12], dtype, d[5], d[0], d[3], d[4]);
}

static void read_kernels(char *text, row *out)
{
    for (char *at = strtok(text, ";\n"); at != NULL && out->count < KERNELS; at = strtok(NULL, ";\n")) {
        char *colon = strchr(at, ':');
        if (colon == NULL) continue;
        *colon = '\0';
        double ms = strtod(colon + 1, NULL);
        if (ms > 0) out->kernels[out->count++] = (kernel){strdup(at), ms};
    }
}

static void read_row(char *line, table *out)
{
    char spec[SPEC], direction[4] = "";
    char *equals = strchr(line, '=');
    if (equals == NULL) return;
    *equals = '\0';
    if (out->count == out->capacity) {
        out->capacity = out->capacity == 0 ? 1024 : 2 * out->capacity;
        out->rows = realloc(out->rows, out->capacity * sizeof *out->rows);
        if (out->rows == NULL) fail("no memory", NULL);
    }
    row *r = &out->rows[out->count];
    *r = (row){.count = 0};
    write_spec(line, spec, direction);
    r->spec = strdup(spec);
    snprintf(r->algorithm, sizeof r->algorithm, "convolution_%s", direction);
    snprintf(r->key, sizeof r->key, "%016zx", out->count);
    read_kernels(equals + 1, r);
    out->count += r->count > 0;
}

static table read_table(const char *path)
{
    static char line[LINE];
    table t = {.count = 0};
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    if (file == NULL) fail("the table cannot be read", NULL);
    while (fgets(line, sizeof line, file) != NULL)
        read_row(line, &t);
    if (file != stdin) fclose(file);
    return t;
}

static double best_of(const row *r)
{
    double best = INFINITY;
    for (int i = 0; i < r->count; i++)
        best = fmin(best, r->kernels[i].ms);
    return best;
}

static double time_of(const row *r, const char *name)
{
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->kernels[i].name, name) == 0) return r->kernels[i].ms;
    return INFINITY; // the row does not have it: measuring it brings nothing
}

// As a contest leaves it: the decision, and each kernel measured.
static void store_row(hone_store *store, const row *r)
{
    hone_error err;
    const kernel *best = &r->kernels[0];
    const hone_store_key key = {"gpu|amd,gfx942", r->algorithm, "1", r->key, r->spec};
    for (int i = 0; i < r->count; i++) {
        if (r->kernels[i].ms < best->ms) best = &r->kernels[i];
        const hone_store_measurement measured = {
            .kernel = r->kernels[i].name, .config = "{}", .time_ns = r->kernels[i].ms * 1e6, .samples = 5};
        if (hone_store_put_measurement(store, &key, &measured, &err) != HONE_OK) fail("measurement", &err);
    }
    const hone_store_decision decision = {
        .key = key,
        .kernel = best->name,
        .platform = "native",
        .config = "{}",
        .verified = true,
        .time_ns = best->ms * 1e6};
    if (hone_store_put(store, &decision, &err) != HONE_OK) fail("decision", &err);
}

// Leaving one out -----------------------------------------------------------------------------------------------------

typedef struct sums {
    double first, measured, predicted, worst; // logarithms
    size_t count, missed;                     // missed: nothing that was proposed is there
    double ns;
} sums;

static hone_transfer_answer ask(hone_transfer *transfer, hone_store *store, const row *r, double *out_ns)
{
    hone_transfer_answer answer;
    hone_error err;
    const hone_transfer_question question = {
        .key = {"gpu|amd,gfx942", r->algorithm, "1", r->key, r->spec}, .regime = HONE_WARM, .others_only = true};
    uint64_t start = bench_now_ns();
    if (hone_transfer_find(transfer, store, NULL, &question, &answer, &err) != HONE_OK) fail("find", &err);
    *out_ns = (double)(bench_now_ns() - start);
    return answer;
}

// Nothing that was proposed: the slowest that the row has, as if nobody had asked.
static double slowest_of(const row *r)
{
    double slowest = 0;
    for (int i = 0; i < r->count; i++)
        slowest = fmax(slowest, r->kernels[i].ms);
    return slowest;
}

static void add_query(sums *s, const row *r, const hone_transfer_answer *answer, double ns)
{
    double best = best_of(r), first = INFINITY, least = INFINITY;
    for (size_t i = 0; i < answer->proposal_count && i < MEASURED; i++) {
        double ms = time_of(r, answer->proposals[i].kernel);
        if (i == 0) first = ms;
        least = fmin(least, ms);
    }
    s->missed += isfinite(least) ? 0 : 1;
    if (!isfinite(first)) first = slowest_of(r);
    if (!isfinite(least)) least = slowest_of(r);
    s->first += log(first / best);
    s->measured += log(least / best);
    s->worst = fmax(s->worst, log(least / best));
    if (answer->proposal_count > 0) s->predicted += log(answer->proposals[0].relative);
    s->ns += ns;
    s->count++;
}

// What the best of the first few is worth.
static double leave_one_out(const char *path)
{
    table t = read_table(path);
    hone_allocator allocator = hone_allocator_system();
    hone_store *store = NULL;
    hone_transfer *transfer = NULL;
    hone_error err;
    if (hone_store_open(allocator, "memory:", &store, &err) != HONE_OK) fail("store", &err);
    if (hone_transfer_create(&allocator, 0, &transfer, &err) != HONE_OK) fail("transfer", &err);
    for (size_t i = 0; i < t.count; i++)
        store_row(store, &t.rows[i]);
    sums s = {.count = 0};
    for (size_t i = 0; i < t.count; i++) {
        double ns;
        hone_transfer_answer answer = ask(transfer, store, &t.rows[i], &ns);
        add_query(&s, &t.rows[i], &answer, ns);
        hone_transfer_answer_deinit(&answer);
    }
    double n = (double)s.count;
    printf("%zu queries, each row left out in turn; geometric means over the best kernel of the row\n", s.count);
    printf("  served at once                 %.4f (predicted %.4f)\n", exp(s.first / n), exp(s.predicted / n));
    printf("  the best of the first %d        %.4f, worst %.3f\n", MEASURED, exp(s.measured / n), exp(s.worst));
    printf("  none of the first %d was there  %zu\n", MEASURED, s.missed);
    printf("  a question took                %.0f us on average\n", s.ns / n / 1e3);
    hone_transfer_destroy(&transfer);
    hone_store_close(&store);
    return exp(s.measured / n);
}

// Cost ----------------------------------------------------------------------------------------------------------------

static void matmul_spec(char out[SPEC], int m, int n, int k)
{
    snprintf(
        out, SPEC,
        "{\"args_spec\":[],\"batch_axes\":null,\"kwargs_spec\":{\"a\":{\"dtype\":\"float32\",\"shape\":[%d,%d]},\"b\":{"
        "\"dtype\":\"float32\",\"shape\":[%d,%d]},\"transpose_b\":false},\"method\":null}",
        m, k, k, n);
}

static void store_call(hone_store *store, int index)
{
    static const char *const call = "matmul(f32[1000,1000], f32[1000,1000])";
    char spec[SPEC], key[20], config[64];
    hone_error err;
    matmul_spec(spec, 16 + index % 97, 16 + index / 97 % 89, 16 + index % 101);
    snprintf(key, sizeof key, "%016x", (unsigned)index);
    const hone_store_key stored = {"cpu|a,b,c,threads=2", "matmul", "1", key, spec};
    for (int i = 0; i < CONFIGS; i++) {
        snprintf(config, sizeof config, "{\"block_m\":%d,\"block_n\":16,\"threads\":2}", i + 1);
        const hone_store_measurement m = {
            .kernel = "avx2", .config = config, .revision = "1", .time_ns = 1000 + i, .samples = 5};
        if (hone_store_put_measurement(store, &stored, &m, &err) != HONE_OK) fail("measurement", &err);
    }
    const hone_store_decision decision = {
        .key = stored,
        .call = call,
        .kernel = "avx2",
        .platform = "native",
        .config = "{\"block_m\":1,\"block_n\":16,\"threads\":2}",
        .source = "autotune",
        .revision = "1",
        .verified = true,
        .time_ns = 1000,
        .evidence = "{\"time_ns\":1000,\"low_ns\":990,\"high_ns\":1010,\"samples\":30,\"default_time_ns\":1500}",
        .environment = "{\"hone\":\"0.1.0\",\"compiler\":\"gcc 12\",\"os\":\"Linux\"}"};
    if (hone_store_put(store, &decision, &err) != HONE_OK) fail("decision", &err);
}

static double ask_one(hone_transfer *transfer, hone_store *store, int index)
{
    char spec[SPEC];
    double ns;
    row r = {.algorithm = "matmul", .key = "ffffffffffffffff", .spec = spec};
    matmul_spec(spec, 20 + index % 60, 24 + index % 50, 30 + index % 70);
    hone_transfer_answer answer = ask(transfer, store, &r, &ns);
    if (answer.neighbour_count == 0) fail("nothing is near", NULL);
    hone_transfer_answer_deinit(&answer);
    return ns;
}

// As a process that opens the store and misses.
static double ask_first(const char *url, int index)
{
    hone_allocator allocator = hone_allocator_system();
    hone_store *store = NULL;
    hone_transfer *transfer = NULL;
    hone_error err;
    if (hone_store_open(allocator, url, &store, &err) != HONE_OK) fail("store", &err);
    if (hone_transfer_create(&allocator, MOST, &transfer, &err) != HONE_OK) fail("transfer", &err);
    double ns = ask_one(transfer, store, index);
    hone_transfer_destroy(&transfer);
    hone_store_close(&store);
    return ns;
}

static void measure_cost(void)
{
    char folder[BENCH_PATH_SIZE], url[BENCH_PATH_SIZE + 32];
    double firsts[FIRSTS], times[QUESTIONS];
    hone_allocator allocator = hone_allocator_system();
    hone_store *store = NULL;
    hone_transfer *transfer = NULL;
    hone_error err;
    if (bench_folder_make(folder) != 0) exit(1);
    snprintf(url, sizeof url, "sqlite:%s/store.db", folder);
    if (hone_store_open(allocator, url, &store, &err) != HONE_OK) fail("store", &err);
    if (hone_transfer_create(&allocator, MOST, &transfer, &err) != HONE_OK) fail("transfer", &err);
    for (int i = 0; i < STORED; i++)
        store_call(store, i);
    for (int i = 0; i < FIRSTS; i++)
        firsts[i] = ask_first(url, i);
    (void)ask_one(transfer, store, 0);
    for (int i = 0; i < QUESTIONS; i++)
        times[i] = ask_one(transfer, store, i);
    printf("a question to a sqlite store of %d decisions of one algorithm, each with %d configs\n", STORED, CONFIGS);
    printf("  a process's first, median      %.2f ms\n", bench_median(firsts, FIRSTS) / 1e6);
    printf("  later ones, median             %.2f ms\n", bench_median(times, QUESTIONS) / 1e6);
    hone_transfer_destroy(&transfer);
    hone_store_close(&store);
    bench_folder_remove(folder);
}

int main(int argc, char **argv)
{
    if (argc > 3) {
        fprintf(stderr, "usage: bench_transfer [TABLE [BOUND]]\n");
        return 2;
    }
    if (argc == 1) {
        measure_cost();
        return 0;
    }
    double worth = leave_one_out(argv[1]);
    return argc > 2 && !(worth <= strtod(argv[2], NULL));
}
