// Arguments in one line, in C: tensors from arrays, values by their C type, and the way back inside a kernel.
//
//   hone_tensor *x = HONE_TENSOR(pixels, height, width), *y = HONE_TENSOR(result, height, width);
//   hone_status status = HONE_CALL(op, &err, x, y, 1.5);                       // hone_run
//   hone_status status = HONE_BIND(op, &plan, &err, x, y, 1.5);                // hone_bind
//   hone_status status = HONE_CALL_PLAN(plan, x, y, 1.5);                      // plan->run
//   hone_status status = HONE_TUNE(op, &options, &result, &err, x, y, 1.5);    // hone_tune
//   HONE_UNPACK(args, const float *, x, float *, y, double, gain);             // in a kernel: three variables
//   HONE_ROWS(kernel, row)                                                     // a kernel that calls row(args, i) for each i
//   HONE_REGISTER(rt, "scale(x: f32[n]) -> y: f32[n]", reference, kernels, &op, &err)   // hone_register
//   hone_runtime_open(HONE_OPTIONS(hone_runtime_options, .store = "none"), &rt, &err)
//
// Macros of at most 16 values; each is evaluated once. C++17 has hone/hone.hpp in their place.
#ifndef HONE_ARGS_H
#define HONE_ARGS_H

#include "hone/plan.h"
#include "hone/registry.h"
#include "hone/tune.h"

#ifdef __cplusplus
extern "C" {
#endif

// A kernel's argument: the address of a tensor's first element, or NULL for none; a scalar; the tensor, or NULL for none.
static inline void *hone_data_of(hone_value value)
{
    return value.tag == HONE_VALUE_TENSOR ? hone_tensor_data(value.as.tensor) : NULL;
}

static inline double hone_float_of(hone_value value)
{
    return value.tag == HONE_VALUE_FLOAT ? value.as.f64 : (double)value.as.i64;
}

static inline int64_t hone_int_of(hone_value value)
{
    return value.as.i64;
}

static inline const char *hone_string_of(hone_value value)
{
    return value.tag == HONE_VALUE_STRING ? value.as.string : NULL;
}

static inline const hone_tensor *hone_tensor_given(hone_value value)
{
    return value.tag == HONE_VALUE_TENSOR ? value.as.tensor : NULL;
}

static inline hone_value hone_of_value(hone_value value)
{
    return value;
}

// Registers an algorithm with its kernels, whose `algorithm` may be NULL, and looks it up.
HONE_MUST_CHECK static inline hone_status hone_register(
    hone_runtime *rt,
    const hone_algorithm *algorithm,
    const hone_kernel *kernels,
    size_t count,
    const hone_op **out,
    hone_error *err)
{
    hone_kernel named[16];
    hone_signature *signature = NULL;
    size_t known = count < 16 ? count : 16;
    hone_status status = hone_register_algorithm(rt, algorithm, err);
    if (status == HONE_OK)
        status = hone_signature_parse(hone_allocator_system(), algorithm->signature, &signature, err);
    const char *name = status == HONE_OK ? hone_signature_name(signature) : NULL;
    for (size_t i = 0; i < known; i++) {
        named[i] = kernels[i];
        if (named[i].algorithm == NULL) named[i].algorithm = name;
    }
    // Of more than 16 each has to name its algorithm.
    if (status == HONE_OK) status = hone_register_kernels(rt, known == count ? named : kernels, count, err);
    if (status == HONE_OK) status = hone_op_get(rt, name, out, err);
    hone_signature_release(&signature);
    return status;
}

// hone_tune for arguments.
//   out  NULL if the result is not wanted, since the decision is stored and answers
HONE_MUST_CHECK static inline hone_status hone_tune_values(
    const hone_op *op,
    const hone_value *args,
    size_t count,
    const hone_tune_options *options,
    hone_result **out,
    hone_error *err)
{
    hone_call *call = NULL;
    hone_result *result = NULL;
    hone_status status = hone_call_bind(hone_allocator_system(), hone_op_signature(op), args, count, false, &call, err);
    if (status == HONE_OK) status = hone_tune(op, call, options, &result, err);
    if (out != NULL)
        *out = result;
    else
        hone_result_release(&result);
    hone_call_release(&call);
    return status;
}

#ifdef __cplusplus
}
#else

// The n-th of them, and how many there are.
#    define HONE_PICK_17(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, chosen, ...) chosen
#    define HONE_COUNT(...)                                                           HONE_PICK_17(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)

#    define HONE_EACH_1(f, x)       f(x)
#    define HONE_EACH_2(f, x, ...)  f(x), HONE_EACH_1(f, __VA_ARGS__)
#    define HONE_EACH_3(f, x, ...)  f(x), HONE_EACH_2(f, __VA_ARGS__)
#    define HONE_EACH_4(f, x, ...)  f(x), HONE_EACH_3(f, __VA_ARGS__)
#    define HONE_EACH_5(f, x, ...)  f(x), HONE_EACH_4(f, __VA_ARGS__)
#    define HONE_EACH_6(f, x, ...)  f(x), HONE_EACH_5(f, __VA_ARGS__)
#    define HONE_EACH_7(f, x, ...)  f(x), HONE_EACH_6(f, __VA_ARGS__)
#    define HONE_EACH_8(f, x, ...)  f(x), HONE_EACH_7(f, __VA_ARGS__)
#    define HONE_EACH_9(f, x, ...)  f(x), HONE_EACH_8(f, __VA_ARGS__)
#    define HONE_EACH_10(f, x, ...) f(x), HONE_EACH_9(f, __VA_ARGS__)
#    define HONE_EACH_11(f, x, ...) f(x), HONE_EACH_10(f, __VA_ARGS__)
#    define HONE_EACH_12(f, x, ...) f(x), HONE_EACH_11(f, __VA_ARGS__)
#    define HONE_EACH_13(f, x, ...) f(x), HONE_EACH_12(f, __VA_ARGS__)
#    define HONE_EACH_14(f, x, ...) f(x), HONE_EACH_13(f, __VA_ARGS__)
#    define HONE_EACH_15(f, x, ...) f(x), HONE_EACH_14(f, __VA_ARGS__)
#    define HONE_EACH_16(f, x, ...) f(x), HONE_EACH_15(f, __VA_ARGS__)
#    define HONE_EACH(f, ...)                                                                                          \
        HONE_PICK_17(                                                                                                  \
            __VA_ARGS__, HONE_EACH_16, HONE_EACH_15, HONE_EACH_14, HONE_EACH_13, HONE_EACH_12, HONE_EACH_11,           \
            HONE_EACH_10, HONE_EACH_9, HONE_EACH_8, HONE_EACH_7, HONE_EACH_6, HONE_EACH_5, HONE_EACH_4, HONE_EACH_3,   \
            HONE_EACH_2, HONE_EACH_1, 0)                                                                               \
        (f, __VA_ARGS__)

// The id of the element type that a pointer points at; an error of the compiler where hone has none.
// clang-format off
#    define HONE_DTYPE_OF(data)                                                                                        \
        _Generic(*(data), _Bool: HONE_BOOL, int8_t: HONE_I8, int16_t: HONE_I16, int32_t: HONE_I32, int64_t: HONE_I64,  \
            uint8_t: HONE_U8, uint16_t: HONE_U16, uint32_t: HONE_U32, uint64_t: HONE_U64, float: HONE_F32,             \
            double: HONE_F64)
// clang-format on

// A pointer to a row-major tensor of the CPU over data, with these dims: of the block that it stands in. An array of arrays is
// given by its first row, `HONE_TENSOR(image[0], 480, 640)`. f16 and bf16: hone_tensor_of.
#    define HONE_TENSOR(data, ...)                                                                                     \
        ((hone_tensor[1]){                                                                                             \
            hone_tensor_of((void *)(data), HONE_DTYPE_OF(data), HONE_COUNT(__VA_ARGS__), (int64_t[]){__VA_ARGS__})})

// A value of what its type says: a pointer to a tensor, a number, a _Bool, a string, or a hone_value as it is, such as
// hone_of_none(). `true` of C11 is an int: hone_of_bool(true).
#    define HONE_VALUE(x)                                                                                              \
        _Generic(                                                                                                      \
            (x),                                                                                                       \
            hone_tensor *: hone_of_tensor,                                                                             \
            const hone_tensor *: hone_of_tensor,                                                                       \
            _Bool: hone_of_bool,                                                                                       \
            int: hone_of_int,                                                                                          \
            unsigned: hone_of_int,                                                                                     \
            long: hone_of_int,                                                                                         \
            unsigned long: hone_of_int,                                                                                         \
            long long: hone_of_int,                                                                                    \
            float: hone_of_float,                                                                                      \
            double: hone_of_float,                                                                                     \
            char *: hone_of_string,                                                                                    \
            const char *: hone_of_string,                                                                              \
            hone_value: hone_of_value)(x)
#    define HONE_VALUES(...)                  ((const hone_value[]){HONE_EACH(HONE_VALUE, __VA_ARGS__)}), HONE_COUNT(__VA_ARGS__)

// Functions that take values, with these: in the order of values in C.
#    define HONE_CALL(op, err, ...)           hone_run((op), HONE_VALUES(__VA_ARGS__), NULL, (err))
#    define HONE_BIND(op, out_plan, err, ...) hone_bind((op), HONE_VALUES(__VA_ARGS__), (out_plan), (err))
#    define HONE_CALL_PLAN(plan, ...)                                                                                  \
        ((plan)->run((plan), ((const hone_value[]){HONE_EACH(HONE_VALUE, __VA_ARGS__)}), NULL))
#    define HONE_TUNE(op, options, out_result, err, ...)                                                               \
        hone_tune_values((op), HONE_VALUES(__VA_ARGS__), (options), (out_result), (err))

// One variable of a kernel's values: a pointer to a tensor's elements, a number, a string, or the tensor.
#    define HONE_GIVEN(type, value)                                                                                    \
        ((type)_Generic(                                                                                               \
            (type){0},                                                                                                 \
            _Bool: hone_int_of,                                                                                        \
            int32_t: hone_int_of,                                                                                      \
            int64_t: hone_int_of,                                                                                      \
            float: hone_float_of,                                                                                      \
            double: hone_float_of,                                                                                     \
            const char *: hone_string_of,                                                                              \
            const hone_tensor *: hone_tensor_given,                                                                    \
            default: hone_data_of)(value))
#    define HONE_UNPACK_2(args, i, type, name) type name = HONE_GIVEN(type, ((const hone_value *)(args))[i])
#    define HONE_UNPACK_4(args, i, type, name, ...)                                                                    \
        HONE_UNPACK_2(args, i, type, name);                                                                            \
        HONE_UNPACK_2(args, (i) + 1, __VA_ARGS__)
#    define HONE_UNPACK_6(args, i, type, name, ...)                                                                    \
        HONE_UNPACK_2(args, i, type, name);                                                                            \
        HONE_UNPACK_4(args, (i) + 1, __VA_ARGS__)
#    define HONE_UNPACK_8(args, i, type, name, ...)                                                                    \
        HONE_UNPACK_2(args, i, type, name);                                                                            \
        HONE_UNPACK_6(args, (i) + 1, __VA_ARGS__)
#    define HONE_UNPACK_10(args, i, type, name, ...)                                                                   \
        HONE_UNPACK_2(args, i, type, name);                                                                            \
        HONE_UNPACK_8(args, (i) + 1, __VA_ARGS__)
#    define HONE_UNPACK_12(args, i, type, name, ...)                                                                   \
        HONE_UNPACK_2(args, i, type, name);                                                                            \
        HONE_UNPACK_10(args, (i) + 1, __VA_ARGS__)
#    define HONE_UNPACK_14(args, i, type, name, ...)                                                                   \
        HONE_UNPACK_2(args, i, type, name);                                                                            \
        HONE_UNPACK_12(args, (i) + 1, __VA_ARGS__)
#    define HONE_UNPACK_16(args, i, type, name, ...)                                                                   \
        HONE_UNPACK_2(args, i, type, name);                                                                            \
        HONE_UNPACK_14(args, (i) + 1, __VA_ARGS__)
// Declares a variable for each value from the first on: at most 8 pairs of a type and a name.
#    define HONE_UNPACK(args, ...)                                                                                     \
        HONE_PICK_17(                                                                                                  \
            __VA_ARGS__, HONE_UNPACK_16, 0, HONE_UNPACK_14, 0, HONE_UNPACK_12, 0, HONE_UNPACK_10, 0, HONE_UNPACK_8, 0, \
            HONE_UNPACK_6, 0, HONE_UNPACK_4, 0, HONE_UNPACK_2, 0, 0)                                                   \
        (args, 0, __VA_ARGS__)

// hone_register of an array of kernels, for an algorithm of which no more is said than its signature and its reference.
#    define HONE_REGISTER(rt, text, function, kernels, out_op, err)                                                    \
        hone_register(                                                                                                 \
            (rt), &(const hone_algorithm){HONE_ALGORITHM, .signature = (text), .reference = (function)}, (kernels),    \
            sizeof(kernels) / sizeof *(kernels), (out_op), (err))

// Options with some fields set, and zero else, for one call.
#    define HONE_OPTIONS(type, ...) (&(const type){.struct_size = sizeof(type), __VA_ARGS__})

// Defines `name`, the function of a kernel or a reference that calls body(args, i), a void (void *args, int64_t i), for every index i of
// the first dim of the first argument: on as many threads as the first parameter of the kernel's space says, and on one
// where it has no space. body unpacks args itself.
#    define HONE_ROWS(name, body)                                                                                      \
        static hone_status name(const hone_plan *plan, const hone_value *args, const hone_execution *execution)        \
        {                                                                                                              \
            const int32_t threads = plan->kernel->space != NULL ? (int32_t)plan->config[0] : 1;                        \
            hone_plan_parallel_for(plan, execution, threads, args[0].as.tensor->shape[0], (body), (void *)args);       \
            return HONE_OK;                                                                                            \
        }

#endif
#endif
