// Reading labels: a lowered program, repeated until it has 64 MB, scanned for labels and beside that for a byte that is
// not in it, which is as fast as memory is read.
//
//   bench_labels PROGRAM...
#include "bench.h"
#include "offline/label.h"

#include <hone/hone.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 64 * 1000 * 1000, MILLION = 1000 * 1000, ABSENT = '\x01', ROUNDS = 21 };

typedef struct program {
    char *text;
    size_t size, labels;
} program;

static char *read_file(const char *path, size_t *out_size)
{
    FILE *file = fopen(path, "rb");
    char *text = malloc(TEXT_SIZE);
    *out_size = file != NULL && text != NULL ? fread(text, 1, TEXT_SIZE, file) : 0;
    if (file != NULL) fclose(file);
    if (*out_size > 0) return text;
    free(text);
    return NULL;
}

// Whole copies only, so that no label is cut.
static int read_repeated(const char *path, program *out)
{
    size_t once = 0;
    out->text = read_file(path, &once);
    if (out->text == NULL) return 1;
    for (out->size = once; out->size + once <= TEXT_SIZE; out->size += once)
        memcpy(out->text + out->size, out->text, once);
    out->labels = hone_labels_scan(out->text, once, NULL, NULL) * (out->size / once);
    return out->labels == 0 || memchr(out->text, ABSENT, out->size) != NULL;
}

static void add_size(void *ctx, const char *label, size_t label_size)
{
    (void)label;
    *(size_t *)ctx += label_size;
}

// bench counts operations, here millions of bytes, but a text is always read to its end.
static int scan_labels(void *ctx, uint64_t count)
{
    const program *read = ctx;
    size_t bytes = 0;
    (void)count;
    return hone_labels_scan(read->text, read->size, add_size, &bytes) != read->labels;
}

static int scan_bytes(void *ctx, uint64_t count)
{
    const program *read = ctx;
    (void)count;
    return memchr(read->text, ABSENT, read->size) != NULL;
}

static int measure(const char *path)
{
    program read = {NULL, 0, 0};
    bench_row row;
    char name[128];
    const char *slash = strrchr(path, '/');
    int failed = read_repeated(path, &read);
    if (!failed)
        failed = bench_compare(
            (bench_side){scan_labels, &read}, (bench_side){scan_bytes, &read}, read.size / MILLION, 0, ROUNDS, &row);
    snprintf(name, sizeof name, "labels/%s", slash != NULL ? slash + 1 : path);
    if (failed)
        fprintf(stderr, "bench_labels: %s: cannot be read, or no label was found in it each time\n", path);
    else
        bench_print(name, "memchr", &row, "at least 300 MB/s");
    free(read.text);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = argc < 2;
    if (failed) fprintf(stderr, "usage: bench_labels PROGRAM...\n");
    for (int i = 1; i < argc; i++)
        failed |= measure(argv[i]);
    return failed;
}
