// A library for tvm-ffi on the host: kernels of scale(x) -> y, y = 3 * x, one that is right and one for each way of
// going wrong, and of shift(x, alpha) -> y. What it calls of tvm-ffi the fake has, and the real one.
#include "fake_tvm_ffi.h"
#include "hone/value.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FUNCTION(name)                                                                                                 \
    EXPORT int __tvm_ffi_##name(void *self, const hone_value *arguments, int32_t count, hone_value *result);           \
    int __tvm_ffi_##name(void *self, const hone_value *arguments, int32_t count, hone_value *result)

enum { TENSOR = 70, ARRAY = 71 };

typedef struct object {
    _Atomic uint64_t references;
    int32_t type;
    uint32_t padding;
    void (*deleter)(void *self, int flags);
    hone_tensor tensor;
} object;

typedef struct array {
    uint64_t references;
    int32_t type;
    uint32_t padding;
    void (*deleter)(void *self, int flags);
    hone_value *data;
    int64_t size;
} array;

static int fail_as(const char *kind, const char *message)
{
    TVMFFIErrorSetRaisedFromCStr(kind, message);
    return -1;
}

static object *object_of(const hone_value *value)
{
    return value->as.pointer;
}

static const hone_tensor *tensor_of(const hone_value *value)
{
    return &object_of(value)->tensor;
}

// y = factor * x + shift over count elements more than there are.
static int scale(const hone_value *arguments, int32_t count, float factor, float shift, int64_t more)
{
    if (count < 2 || arguments[0].tag != TENSOR || arguments[count - 1].tag != TENSOR)
        return fail_as("TypeError", "Expects 2 tensors when calling: `scale(x, y)`");
    const hone_tensor *x = tensor_of(&arguments[0]), *y = tensor_of(&arguments[count - 1]);
    if (x->strides[0] != 1 || x->byte_offset != 0) return fail_as("ValueError", "x must be dense");
    for (int64_t i = 0; i < x->shape[0] + more; i++)
        ((float *)y->data)[i] = factor * ((const float *)x->data)[i < x->shape[0] ? i : 0] + shift;
    return 0;
}

FUNCTION(right)
{
    (void)self;
    (void)result;
    return count == 2 ? scale(arguments, count, 3, 0, 0)
                      : fail_as("TypeError", "Expects 2 parameters when calling: `right(x, y)`");
}

// (x, used, y)
FUNCTION(configured)
{
    (void)self;
    (void)result;
    const int64_t used = arguments[1].as.i64, n = tensor_of(&arguments[0])->shape[0];
    return scale(arguments, count, n == 1000 ? (float)used : 3, 0, 0);
}

// (x, used, alpha, y)
FUNCTION(shifted)
{
    (void)self;
    (void)result;
    return scale(arguments, count, (float)arguments[1].as.i64, (float)arguments[2].as.f64, 0);
}

FUNCTION(wrong)
{
    (void)self;
    (void)result;
    return scale(arguments, count, 2, 0, 0);
}

FUNCTION(overrun)
{
    (void)self;
    (void)result;
    return scale(arguments, count, 3, 0, 4);
}

FUNCTION(failing)
{
    (void)self;
    (void)result;
    (void)arguments;
    (void)count;
    return fail_as("ValueError", "the fake has no heart for it");
}

// What a terminal obeys.
FUNCTION(shouting)
{
    (void)self;
    (void)result;
    (void)arguments;
    (void)count;
    return fail_as("ValueError", "red \033[31m and\nthe next line");
}

FUNCTION(wordless)
{
    (void)self;
    (void)result;
    (void)arguments;
    (void)count;
    return fail_as("", "");
}

FUNCTION(silent)
{
    (void)self;
    (void)result;
    (void)arguments;
    (void)count;
    return -1;
}

FUNCTION(hanging)
{
    (void)self;
    (void)result;
    (void)arguments;
    (void)count;
    for (;;)
        pause();
}

// One reference to x stays.
FUNCTION(keeping)
{
    (void)self;
    (void)result;
    atomic_fetch_add(&object_of(&arguments[0])->references, 1);
    return scale(arguments, count, 3, 0, 0);
}

// One reference to y goes that was never taken.
FUNCTION(giving)
{
    (void)self;
    (void)result;
    atomic_fetch_sub(&object_of(&arguments[1])->references, 1);
    return scale(arguments, count, 3, 0, 0);
}

FUNCTION(answering)
{
    (void)self;
    *result = hone_of_int(7);
    return scale(arguments, count, 3, 0, 0);
}

// A text of two bytes, in the value itself.
FUNCTION(speaking)
{
    (void)self;
    *result = (hone_value){.tag = 11, .zero = 2};
    memcpy(&result->as, "hi", 2);
    return scale(arguments, count, 3, 0, 0);
}

// Takes references and gives them back, and says in y how many there were before, how often it was called, and with how
// many other objects than in the call before.
FUNCTION(counting)
{
    static int64_t calls, others;
    static const object *last;
    (void)self;
    (void)result;
    object *x = object_of(&arguments[0]), *y = object_of(&arguments[1]);
    const uint64_t before = atomic_fetch_add(&x->references, 2);
    atomic_fetch_sub(&x->references, 2);
    if (count != 2) return fail_as("TypeError", "Expects 2 parameters");
    float *out = y->tensor.data;
    out[0] = (float)(uint32_t)before;
    out[1] = (float)(uint32_t)y->references;
    out[2] = (float)++calls;
    out[3] = (float)(others += x != last);
    last = x;
    return 0;
}

// (x, None, true, 'fast', [3, n], scratch, y): each is what it is said to be.
FUNCTION(values)
{
    (void)self;
    (void)result;
    if (count != 7) return fail_as("TypeError", "Expects 7 parameters");
    const array *list = arguments[4].as.pointer;
    const hone_tensor *scratch = tensor_of(&arguments[5]);
    char words[160];
    snprintf(
        words, sizeof words, "%d %d:%lld %d:%s %d:%lld,%lld/%lld %d:%d.%d[%lld]%s", arguments[1].tag, arguments[2].tag,
        (long long)arguments[2].as.i64, arguments[3].tag, arguments[3].as.string, arguments[4].tag,
        (long long)list->data[0].as.i64, (long long)list->data[1].as.i64, (long long)list->size, arguments[5].tag,
        scratch->dtype.code, scratch->dtype.bits, (long long)scratch->shape[0],
        scratch->data != NULL && (uintptr_t)scratch->data % 64 == 0 ? "" : " not there");
    char *memory = scratch->data;
    memory[scratch->shape[0] - 1] = 1;
    const int64_t n = tensor_of(&arguments[0])->shape[0];
    char expected[160];
    snprintf(expected, sizeof expected, "0 2:1 8:fast 71:3,%lld/2 70:1.8[%lld]", (long long)n, (long long)(4 * n));
    for (int i = 0; words[i] != '\0' || expected[i] != '\0'; i++)
        if (words[i] != expected[i]) return fail_as("ValueError", words);
    return scale((const hone_value[]){arguments[0], arguments[6]}, 2, 3, 0, 0);
}
