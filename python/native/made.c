// What the results of a call are that leaves them out: told by the signature once, and then remembered, for a loop asks
// the same.
#include "native.h"

#include <string.h>

// What dtypes and shapes of results depend on, in words. 0: it is not remembered, for a text or too much is among it.
typedef struct made_key {
    int64_t words[NATIVE_KEY_WORDS];
    size_t count;
    bool fits;
} made_key;

static void add(made_key *key, int64_t word)
{
    key->fits = key->fits && key->count < NATIVE_KEY_WORDS;
    if (key->fits) key->words[key->count++] = word;
}

static void add_tensor(made_key *key, const hone_tensor *tensor)
{
    add(key, tensor->dtype.code | (int64_t)tensor->dtype.bits << 8 | (int64_t)tensor->dtype.lanes << 16 |
                 (int64_t)tensor->ndim << 32);
    for (int32_t i = 0; i < tensor->ndim; i++)
        add(key, tensor->shape[i]);
}

static void add_value(made_key *key, const hone_value *value)
{
    int64_t bits = 0;
    add(key, value->tag);
    if (value->tag == HONE_VALUE_TENSOR) add_tensor(key, value->as.tensor);
    if (value->tag == HONE_VALUE_BOOL || value->tag == HONE_VALUE_INT) add(key, value->as.i64);
    if (value->tag == HONE_VALUE_FLOAT) {
        memcpy(&bits, &value->as.f64, sizeof bits);
        add(key, bits);
    }
    key->fits = key->fits && value->tag != HONE_VALUE_STRING;
}

// A tensor of torch for axes="bhsd" lies in memory as hone has it, which kernels are decided for, and is seen in torch's
// order: a graph that was traced expects one layout, whatever that of the operands is.
static bool is_turned(const native_arguments *arguments)
{
    return arguments->swaps && arguments->like != NULL && native_torch_is_tensor(arguments->like);
}

static void make_key(made_key *out, const native_operation *operation, const native_arguments *arguments)
{
    out->count = 0;
    out->fits = true;
    add(out, arguments->swaps);
    add(out, is_turned(arguments));
    for (size_t i = 0; i < arguments->count; i++)
        if (!operation->parameters[i].is_result) add_value(out, &arguments->values[i]);
}

void native_made_release(native_made *made)
{
    if (made == NULL || --made->users > 0) return;
    for (size_t i = 0; i < made->count; i++) {
        native_made_result *result = &made->results[i];
        Py_XDECREF(result->shape);
        Py_XDECREF(result->dtype);
        Py_XDECREF((PyObject *)result->like);
        Py_XDECREF(result->maker);
        Py_XDECREF(result->maker_dtype);
    }
    PyMem_Free(made);
}

// The shape as the caller sees it, or as hone has it, where what is made is turned.
static PyObject *shape_of(const native_arguments *arguments, const hone_tensor *tensor)
{
    native_tensor seen = {.tensor = tensor};
    const bool swaps = arguments->swaps && !is_turned(arguments);
    return swaps && !native_tensor_swap(&seen) ? NULL : native_shape(seen.tensor);
}

static bool find_maker(native_made_result *out, PyTypeObject *like)
{
    PyObject *pair = PyObject_CallFunctionObjArgs(native.maker, (PyObject *)like, out->dtype, NULL);
    const bool made = pair != NULL && PyTuple_Check(pair) && PyTuple_Size(pair) == 2;
    if (made) {
        out->like = (PyTypeObject *)Py_NewRef((PyObject *)like);
        out->maker = Py_NewRef(PyTuple_GetItem(pair, 0));
        out->maker_dtype = Py_NewRef(PyTuple_GetItem(pair, 1));
    }
    Py_XDECREF(pair);
    return pair != NULL;
}

static bool fill(native_made_result *out, const native_arguments *arguments, const hone_tensor *tensor)
{
    out->is_turned = is_turned(arguments);
    out->shape = shape_of(arguments, tensor);
    out->dtype = native_text(hone_dtype_find(tensor->dtype)->numpy_name);
    out->element = tensor->dtype;
    out->ndim = tensor->ndim;
    memcpy(out->dims, tensor->shape, (size_t)tensor->ndim * sizeof *out->dims);
    if (out->shape == NULL || out->dtype == NULL) return false;
    return arguments->like == NULL || find_maker(out, Py_TYPE(arguments->like));
}

static native_made *infer(native_operation *operation, const native_arguments *arguments)
{
    size_t first = operation->positional, last = first;
    hone_call *call = NULL;
    if (!native_arguments_describe(arguments, operation, &call)) return NULL;
    while (last < operation->count && operation->parameters[last].is_result)
        last++;
    native_made *made = PyMem_Calloc(1, sizeof *made + (last - first) * sizeof *made->results);
    bool done = made != NULL || PyErr_NoMemory() != NULL;
    if (done) {
        made->users = 1;
        made->count = last - first;
    }
    for (size_t i = first; done && i < last; i++)
        done = fill(&made->results[i - first], arguments, hone_call_tensor(call, i));
    hone_call_release(&call);
    if (!done) native_made_release(made);
    return done ? made : NULL;
}

static size_t place_of(const made_key *key)
{
    uint64_t hash = key->count;
    for (size_t i = 0; i < key->count; i++)
        hash = (hash ^ (uint64_t)key->words[i]) * 0x9E3779B97F4A7C15u;
    return hash >> 58; // of NATIVE_MADE_KEPT
}

native_made *native_made_find(native_operation *operation, const native_arguments *arguments)
{
    made_key key;
    make_key(&key, operation, arguments);
    native_made **place = &operation->made[place_of(&key)], *made = *place;
    const bool same = made != NULL && key.fits && made->words == key.count &&
                      memcmp(made->key, key.words, key.count * sizeof *key.words) == 0;
    if (!same) made = infer(operation, arguments);
    if (made == NULL) return NULL;
    made->users++; // the caller's, and the operation's
    if (same) return made;
    made->words = key.fits ? key.count : 0;
    memcpy(made->key, key.words, made->words * sizeof *key.words);
    native_made *before = *place;
    *place = made;
    native_made_release(before);
    return made;
}
