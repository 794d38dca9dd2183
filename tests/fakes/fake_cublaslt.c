// cuBLASLt without a GPU: proposes three algorithms, of which the third needs a workspace, and multiplies in the host's
// memory. It checks what the real one would read out of bounds with.
#include "fake_cuda.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { OK = 0, INVALID_VALUE = 7, NOT_SUPPORTED = 15, F32 = 0, BF16 = 14, F8_E4M3 = 28, NEEDED = 1024, OF_EACH = 3 };

typedef struct product {
    int32_t transposed[2], epilogue, modes[2];
    const float *scales[2];
    const uint16_t *bias;
} product;

typedef struct layout {
    int type;
    uint64_t rows, columns;
    int64_t leading;
    int32_t count; // of a batch
    int64_t stride;
} layout;

typedef struct preference {
    size_t workspace;
} preference;

typedef struct proposal {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} proposal;

EXPORT size_t cublasLtGetVersion(void);
EXPORT int cublasLtCreate(void **);
EXPORT int cublasLtDestroy(void *);
EXPORT int cublasLtMatmulDescCreate(product **, int, int);
EXPORT int cublasLtMatmulDescSetAttribute(product *, int, const void *, size_t);
EXPORT int cublasLtMatmulDescDestroy(product *);
EXPORT int cublasLtMatrixLayoutCreate(layout **, int, uint64_t, uint64_t, int64_t);
EXPORT int cublasLtMatrixLayoutSetAttribute(layout *, int, const void *, size_t);
EXPORT int cublasLtMatrixLayoutDestroy(layout *);
EXPORT int cublasLtMatmulPreferenceCreate(preference **);
EXPORT int cublasLtMatmulPreferenceSetAttribute(preference *, int, const void *, size_t);
EXPORT int cublasLtMatmulPreferenceDestroy(preference *);
EXPORT int cublasLtMatmulAlgoGetHeuristic(
    void *, product *, layout *, layout *, layout *, layout *, preference *, int, proposal *, int *);
EXPORT int cublasLtMatmul(
    void *,
    product *,
    const float *,
    const void *,
    layout *,
    const void *,
    layout *,
    const float *,
    const void *,
    layout *,
    void *,
    layout *,
    const uint64_t *,
    void *,
    size_t,
    void *);

size_t cublasLtGetVersion(void)
{
    return 130000;
}

int cublasLtCreate(void **handle)
{
    *handle = malloc(1);
    return OK;
}

int cublasLtDestroy(void *handle)
{
    free(handle);
    return OK;
}

int cublasLtMatmulDescCreate(product **out, int compute, int scale)
{
    if (compute != 68 || scale != F32) return INVALID_VALUE;
    *out = calloc(1, sizeof **out);
    return OK;
}

int cublasLtMatmulDescSetAttribute(product *p, int attribute, const void *value, size_t size)
{
    const struct {
        int attribute;
        void *to;
        size_t size;
    } fields[] = {
        {3, &p->transposed[0], 4}, {4, &p->transposed[1], 4}, {7, &p->epilogue, 4},  {8, &p->bias, 8},
        {17, &p->scales[0], 8},    {18, &p->scales[1], 8},    {31, &p->modes[0], 4}, {32, &p->modes[1], 4},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].attribute == attribute && fields[i].size == size) {
            memcpy(fields[i].to, value, size);
            return OK;
        }
    return INVALID_VALUE;
}

int cublasLtMatmulDescDestroy(product *p)
{
    free(p);
    return OK;
}

int cublasLtMatrixLayoutCreate(layout **out, int type, uint64_t rows, uint64_t columns, int64_t leading)
{
    if ((uint64_t)leading < rows) return INVALID_VALUE;
    *out = malloc(sizeof **out);
    **out = (layout){type, rows, columns, leading, 1, 0};
    return OK;
}

int cublasLtMatrixLayoutSetAttribute(layout *l, int attribute, const void *value, size_t size)
{
    if (attribute == 5 && size == sizeof l->count)
        memcpy(&l->count, value, size);
    else if (attribute == 6 && size == sizeof l->stride)
        memcpy(&l->stride, value, size);
    else
        return INVALID_VALUE;
    return OK;
}

int cublasLtMatrixLayoutDestroy(layout *l)
{
    free(l);
    return OK;
}

int cublasLtMatmulPreferenceCreate(preference **out)
{
    *out = calloc(1, sizeof **out);
    return OK;
}

int cublasLtMatmulPreferenceSetAttribute(preference *p, int attribute, const void *value, size_t size)
{
    if (attribute == 1 && size == sizeof p->workspace) memcpy(&p->workspace, value, size);
    return attribute == 1 || (attribute >= 5 && attribute <= 8 && size == 4) ? OK : INVALID_VALUE;
}

int cublasLtMatmulPreferenceDestroy(preference *p)
{
    free(p);
    return OK;
}

int cublasLtMatmulAlgoGetHeuristic(
    void *handle,
    product *p,
    layout *a,
    layout *b,
    layout *c,
    layout *d,
    preference *wanted,
    int asked,
    proposal *out,
    int *count)
{
    (void)handle;
    (void)d;
    uint64_t m = p->transposed[0] ? a->columns : a->rows, k = p->transposed[0] ? a->rows : a->columns;
    if (m != c->rows || b->rows != k || b->columns != c->columns) return INVALID_VALUE;
    if (a->count != c->count || b->count != c->count) return INVALID_VALUE;
    int there = wanted->workspace >= NEEDED ? 3 : 2;
    *count = asked < there ? asked : there;
    for (int i = 0; i < *count; i++)
        out[i] = (proposal){.algorithm = {(uint64_t)i + 1}, .workspace = i == 2 ? NEEDED : 0, .state = OK};
    return OK;
}

// An element of f8_e4m3fn, which is finite here.
static double byte_value(uint8_t bits)
{
    const int exponent = bits >> 3 & 15, fraction = bits & 7;
    const double size = exponent == 0 ? ldexp(fraction, -9) : ldexp(8 + fraction, exponent - 10);
    return bits & 0x80 ? -size : size;
}

static double get(const void *from, const layout *l, uint64_t row, uint64_t column)
{
    uint64_t at = row + column * (uint64_t)l->leading;
    uint32_t bits = 0;
    float value;
    if (l->type == F32) return ((const float *)from)[at];
    if (l->type == F8_E4M3) return byte_value(((const uint8_t *)from)[at]);
    bits = (uint32_t)((const uint16_t *)from)[at] << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void put(void *to, const layout *l, uint64_t row, uint64_t column, double sum)
{
    uint64_t at = row + column * (uint64_t)l->leading;
    float value = (float)sum;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (l->type == F32)
        ((float *)to)[at] = value;
    else
        ((uint16_t *)to)[at] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// The matrix of a batch.
static const void *at(const void *data, const layout *l, int32_t index)
{
    return (const char *)data + index * l->stride * (l->type == F32 ? 4 : 2);
}

// Scales are those of rows and columns as the library counts them, or one each; a bias of bf16 goes along rows.
static double finish(const product *p, double sum, uint64_t row, uint64_t column)
{
    uint32_t bits = 0;
    float bias = 0;
    if (p->scales[0] != NULL)
        sum *= (double)p->scales[0][p->modes[0] == OF_EACH ? row : 0] *
               (double)p->scales[1][p->modes[1] == OF_EACH ? column : 0];
    if (p->epilogue != 4) return sum;
    bits = (uint32_t)p->bias[row] << 16;
    memcpy(&bias, &bits, sizeof bias);
    return sum + (double)bias;
}

static void multiply(
    const product *p, const void *a, layout *a_layout, const void *b, layout *b_layout, void *d, layout *d_layout)
{
    uint64_t k = b_layout->rows;
    for (uint64_t column = 0; column < d_layout->columns; column++)
        for (uint64_t row = 0; row < d_layout->rows; row++) {
            double sum = 0;
            for (uint64_t i = 0; i < k; i++)
                sum += get(a, a_layout, p->transposed[0] ? i : row, p->transposed[0] ? row : i) *
                       get(b, b_layout, i, column);
            put(d, d_layout, row, column, finish(p, sum, row, column));
        }
}

int cublasLtMatmul(
    void *handle,
    product *p,
    const float *alpha,
    const void *a,
    layout *a_layout,
    const void *b,
    layout *b_layout,
    const float *beta,
    const void *c,
    layout *c_layout,
    void *d,
    layout *d_layout,
    const uint64_t *algorithm,
    void *workspace,
    size_t size,
    void *stream)
{
    (void)handle;
    (void)stream;
    if (*alpha != 1 || *beta != 0 || c != d || c_layout != d_layout) return INVALID_VALUE;
    if (a_layout->type == F8_E4M3 && (!p->transposed[0] || p->modes[0] != p->modes[1] || d_layout->type != BF16))
        return NOT_SUPPORTED;
    if (a_layout->type != F32 && a_layout->type != BF16 && a_layout->type != F8_E4M3) return NOT_SUPPORTED;
    if (algorithm[0] == 3 && (workspace == NULL || size < NEEDED)) return INVALID_VALUE;
    if (workspace != NULL) memset(workspace, 0xee, size);
    fake_log("multiply algorithm %d workspace %zu", (int)algorithm[0], size);
    for (int32_t i = 0; i < d_layout->count; i++)
        multiply(
            p, at(a, a_layout, i), a_layout, at(b, b_layout, i), b_layout, (void *)(uintptr_t)at(d, d_layout, i),
            d_layout);
    return OK;
}
