// Arrays of Python as tensors, without copies.
#include "native.h"

#include <string.h>

// DLPack 1.1, dlpack.h: what __dlpack__ puts in its capsules. A DLTensor is a hone_tensor.
typedef struct managed_tensor {
    hone_tensor tensor;
    void *manager;
    void (*deleter)(struct managed_tensor *self);
} managed_tensor;

enum { FLAG_READ_ONLY = 1 };

_Static_assert(sizeof(hone_tensor) == 48 && offsetof(native_managed_tensor, tensor) == 32, "as DLPack lays it out");

static bool fail_versioned(const native_managed_tensor *versioned)
{
    if (versioned == NULL) return false;
    PyErr_Format(
        PyExc_BufferError, "the array speaks DLPack %u.%u; hone reads versions 0 and 1", (unsigned)versioned->major,
        (unsigned)versioned->minor);
    return false;
}

// The capsule is left as it is: it owns the tensor until its last reference goes, which is after the call.
static bool open_capsule(PyObject *capsule, native_tensor *out)
{
    out->owner = capsule;
    out->exchange = NULL;
    out->read_only = false;
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        out->tensor = &((managed_tensor *)PyCapsule_GetPointer(capsule, "dltensor"))->tensor;
        return true;
    }
    if (!PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        PyErr_Format(PyExc_BufferError, "expected a capsule of DLPack that is not used, got %R of __dlpack__", capsule);
        Py_DECREF(capsule);
        return false;
    }
    const native_managed_tensor *versioned = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (versioned == NULL || versioned->major != 1) {
        fail_versioned(versioned);
        Py_DECREF(capsule);
        return false;
    }
    out->tensor = &versioned->tensor;
    out->read_only = versioned->flags & FLAG_READ_ONLY;
    return true;
}

// --- arrays of ml_dtypes

static PyObject *field(PyObject *dict, const char *name)
{
    PyObject *value = PyDict_Check(dict) ? PyDict_GetItemString(dict, name) : NULL;
    if (value == NULL) PyErr_Format(PyExc_BufferError, "__array_interface__ has no %s", name);
    return value;
}

static bool read_dims(PyObject *tuple, int64_t *out, int32_t *out_count)
{
    Py_ssize_t count = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;
    if (count < 0 || count > HONE_MAX_RANK) {
        PyErr_Format(PyExc_BufferError, "expected an array of at most %d dims, got %zd", (int)HONE_MAX_RANK, count);
        return false;
    }
    *out_count = (int32_t)count;
    for (Py_ssize_t i = 0; i < count; i++) {
        out[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        if (out[i] == -1 && PyErr_Occurred() != NULL) return false;
    }
    return true;
}

// The type of an array that DLPack cannot carry out of numpy. NULL without an exception: it is not one of these.
static const hone_dtype_info *extended_dtype(PyObject *array)
{
    PyObject *dtype = PyObject_GetAttrString(array, "dtype");
    PyObject *name = dtype != NULL ? PyObject_GetAttrString(dtype, "name") : NULL;
    const char *text = name != NULL && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    const hone_dtype_info *info = text != NULL ? hone_dtype_by_name(text) : NULL;
    Py_XDECREF(dtype);
    Py_XDECREF(name);
    PyErr_Clear();
    bool extended =
        info != NULL && (info->dtype.code == HONE_CODE_BFLOAT || info->dtype.code >= HONE_CODE_FLOAT8_E4M3FN);
    return extended ? info : NULL;
}

static bool read_strides(PyObject *strides, int32_t ndim, int64_t element_bytes, native_tensor *out)
{
    int32_t count = 0;
    if (strides == NULL || strides == Py_None) return true;
    if (!read_dims(strides, out->strides, &count)) return false;
    for (int32_t i = 0; i < ndim; i++) {
        if (count != ndim || out->strides[i] % element_bytes != 0) {
            PyErr_SetString(
                PyExc_BufferError, "the strides of an array must be multiples of its element's size: give a copy");
            return false;
        }
        out->strides[i] /= element_bytes;
    }
    out->own.strides = out->strides;
    return true;
}

static bool read_interface(PyObject *interface, const hone_dtype_info *info, native_tensor *out)
{
    PyObject *shape = field(interface, "shape"), *data = shape != NULL ? field(interface, "data") : NULL;
    if (data == NULL) return false;
    if (!PyTuple_Check(data) || PyTuple_Size(data) != 2) {
        PyErr_SetString(PyExc_BufferError, "__array_interface__ brings no pair of address and read-only flag");
        return false;
    }
    out->own = (hone_tensor){.device = {HONE_DEVICE_CPU, 0}, .dtype = info->dtype, .shape = out->shape};
    out->own.data = PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));
    if (out->own.data == NULL && PyErr_Occurred() != NULL) return false;
    out->read_only = PyObject_IsTrue(PyTuple_GetItem(data, 1)) != 0;
    return read_dims(shape, out->shape, &out->own.ndim) &&
           read_strides(PyDict_GetItemString(interface, "strides"), out->own.ndim, info->bits / 8, out);
}

static bool open_interface(PyObject *array, const hone_dtype_info *info, native_tensor *out)
{
    PyObject *interface = PyObject_GetAttrString(array, "__array_interface__");
    bool done = interface != NULL && read_interface(interface, info, out);
    Py_XDECREF(interface);
    if (!done) return false;
    Py_INCREF(array);
    out->owner = array;
    out->exchange = NULL;
    out->tensor = &out->own;
    return true;
}

// --- descriptions

// The name of "float32", numpy.dtype("float32"), numpy.float32 or jax.numpy.float32; NULL without an exception for
// others.
static PyObject *dtype_name(PyObject *named)
{
    static const char *const fields[] = {"name", "__name__"};
    PyObject *name = PyUnicode_Check(named) ? Py_NewRef(named) : NULL;
    for (size_t i = 0; name == NULL && i < sizeof fields / sizeof *fields; i++) {
        name = PyObject_GetAttrString(named, fields[i]);
        if (name != NULL && !PyUnicode_Check(name)) Py_CLEAR(name);
        PyErr_Clear();
    }
    return name;
}

static const hone_dtype_info *named_dtype(PyObject *named)
{
    PyObject *name = dtype_name(named);
    const char *text = name != NULL ? native_utf8(name) : NULL;
    const hone_dtype_info *info = text != NULL ? hone_dtype_by_name(text) : NULL;
    Py_XDECREF(name);
    if (info != NULL) return info;
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "expected an element type (\"float32\", numpy.float32), got %R", named);
    return NULL;
}

static bool read_shape(PyObject *shape, native_tensor *out)
{
    PyObject *dims = PySequence_Check(shape) ? PySequence_Tuple(shape) : NULL;
    if (dims == NULL && PyErr_Occurred() == NULL)
        PyErr_Format(PyExc_TypeError, "a shape must be a tuple of ints, got %R", shape);
    bool done = dims != NULL && read_dims(dims, out->shape, &out->own.ndim);
    Py_XDECREF(dims);
    return done;
}

static bool describe_pair(PyObject *pair, native_tensor *out)
{
    const hone_dtype_info *info = named_dtype(PyTuple_GetItem(pair, 0));
    if (info == NULL) return false;
    out->own = (hone_tensor){.device = {HONE_DEVICE_CPU, 0}, .dtype = info->dtype, .shape = out->shape};
    if (PyTuple_Size(pair) >= 4) {
        out->own.device.type = (int32_t)PyLong_AsLong(PyTuple_GetItem(pair, 2));
        out->own.device.id = (int32_t)PyLong_AsLong(PyTuple_GetItem(pair, 3));
        if (PyErr_Occurred() != NULL) return false;
    }
    out->owner = NULL;
    out->exchange = NULL;
    out->read_only = false;
    out->tensor = &out->own;
    if (!read_shape(PyTuple_GetItem(pair, 1), out)) return false;
    return PyTuple_Size(pair) < 5 || read_strides(PyTuple_GetItem(pair, 4), out->own.ndim, 1, out);
}

PyObject *native_shape(const hone_tensor *tensor)
{
    PyObject *shape = PyTuple_New(tensor->ndim);
    for (int32_t i = 0; shape != NULL && i < tensor->ndim; i++) {
        PyObject *dim = PyLong_FromLongLong(tensor->shape[i]);
        if (dim == NULL || PyTuple_SetItem(shape, i, dim) != 0) Py_CLEAR(shape);
    }
    return shape;
}

// --- types

// Arrays of some types are shown by a function of Python's, which may also refuse them; most types have none.
typedef struct known_type {
    PyTypeObject *type;
    PyObject *exporter;              // or None
    const native_exchange *exchange; // NULL: the type brings none
    bool is_viewed;                  // through the exchange, before the exporter is asked
    bool is_torch;
} known_type;

static known_type known_types[8];
static size_t known_last;

// torch's tensors and CuPy's arrays can all be written, so that a view without flags says all of them.
static known_type describe_type(PyTypeObject *type, PyObject *exporter)
{
    known_type known = {.type = type, .exporter = exporter, .is_torch = exporter == native.show_torch};
    const bool is_refused = exporter != Py_None && !known.is_torch && exporter != native.show_cupy;
    if (!is_refused) known.exchange = native_exchange_of(type);
    known.is_viewed = known.exchange != NULL && exporter != Py_None && (!known.is_torch || native_torch_learn(type));
    return known;
}

static const known_type *learn_type(PyTypeObject *type)
{
    static size_t next;
    PyObject *exporter = PyObject_CallFunctionObjArgs(native.exporter, (PyObject *)type, NULL);
    if (exporter == NULL) return NULL;
    const known_type learned = describe_type(type, exporter);
    known_last = next++ % (sizeof known_types / sizeof *known_types);
    known_type *known = &known_types[known_last];
    const known_type before = *known;
    Py_INCREF((PyObject *)type);
    *known = learned;
    Py_XDECREF((PyObject *)before.type);
    Py_XDECREF(before.exporter);
    return known;
}

// NULL with an exception. It stands until another type is learned.
static const known_type *find_type(PyTypeObject *type)
{
    const known_type *known = &known_types[known_last];
    if (known->type == type) return known;
    for (size_t i = 0; i < sizeof known_types / sizeof *known_types; i++) {
        if (known_types[i].type != type) continue;
        known_last = i;
        return &known_types[i];
    }
    return learn_type(type);
}

// An exporter without the argument knows no versions, and has said what is wrong already.
static PyObject *export_versioned(PyObject *object)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *method = PyObject_GetAttr(object, native.name_dlpack);
    PyObject *capsule =
        method != NULL ? PyObject_Call(method, native.unversioned_arguments, native.versioned_arguments) : NULL;
    Py_XDECREF(method);
    if (capsule == NULL) {
        PyErr_Clear();
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return capsule;
}

// What the array says of why it does not go, behind its dtype, which it leaves out.
static bool fail_dtype(PyObject *array)
{
    PyObject *type, *value, *trace, *dtype;
    if (!PyErr_ExceptionMatches(PyExc_BufferError)) return false;
    PyErr_Fetch(&type, &value, &trace);
    dtype = PyObject_GetAttrString(array, "dtype");
    PyErr_Clear();
    if (dtype == NULL) {
        PyErr_Restore(type, value, trace);
        return false;
    }
    PyObject *is_native = PyObject_GetAttrString(dtype, "isnative");
    PyErr_Clear();
    if (is_native == Py_False)
        PyErr_Format(
            PyExc_BufferError,
            "got an array of %S, expected the byte order of this machine: give "
            "array.astype(array.dtype.newbyteorder(\"=\"))",
            dtype);
    else
        PyErr_Format(PyExc_BufferError, "got an array of %S, expected an array of numbers: %S", dtype, value);
    Py_XDECREF(is_native);
    Py_DECREF(dtype);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return false;
}

static bool open_refused(PyObject *object, native_tensor *out)
{
    if (PyErr_ExceptionMatches(PyExc_AttributeError) || PyType_Check(object)) {
        PyErr_Clear();
        PyObject *type = PyType_Check(object) ? PyObject_Repr(object) : PyType_GetName(Py_TYPE(object));
        if (type != NULL)
            PyErr_Format(
                PyExc_TypeError,
                "expected an array (of numpy, torch, JAX or CuPy, or another with __dlpack__) or a list of numbers, "
                "got %U",
                type);
        Py_XDECREF(type);
        return false;
    }
    if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_TypeError)) return false;
    PyObject *capsule = export_versioned(object);
    if (capsule != NULL) return open_capsule(capsule, out);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    const hone_dtype_info *info = extended_dtype(object);
    if (info == NULL) {
        PyErr_Restore(type, value, trace);
        return fail_dtype(object);
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return open_interface(object, info, out);
}

static bool open_array(PyObject *object, native_tensor *out)
{
    PyObject *capsule = PyObject_CallMethodObjArgs(object, native.name_dlpack, NULL);
    return capsule != NULL ? open_capsule(capsule, out) : open_refused(object, out);
}

// What the exporter gives back: a capsule, or an array that shows itself.
static bool open_shown(PyObject *exporter, PyObject *object, native_tensor *out)
{
    Py_INCREF(exporter); // another thread may learn types meanwhile
    PyObject *shown = PyObject_CallFunctionObjArgs(exporter, object, NULL);
    Py_DECREF(exporter);
    if (shown == NULL) return fail_dtype(object);
    if (PyCapsule_CheckExact(shown)) return open_capsule(shown, out);
    bool done = open_array(shown, out);
    Py_DECREF(shown);
    return done;
}

// False without an exception: what is wrong with it, if anything is, is told on the way through Python.
static bool open_view(
    const known_type *known, PyObject *object, native_taking taking, bool *is_outside_forward, native_tensor *out)
{
    if (!native_exchange_view(known->exchange, object, out)) return false;
    const bool is_sure = !known->is_torch || taking == NATIVE_MADE;
    if (!is_sure && taking != NATIVE_QUICKLY && !*is_outside_forward)
        *is_outside_forward = !native_torch_is_forward(); // a tenth of a call, where each tensor asks
    if (is_sure || (native_torch_is_plain(object, &out->own) && (taking == NATIVE_QUICKLY || *is_outside_forward)))
        return true;
    PyErr_Clear();
    Py_CLEAR(out->owner);
    return false;
}

// With an owner, whose flags say whether it may be written. False without an exception: __dlpack__ is asked.
static bool open_managed(const native_exchange *exchange, PyObject *object, native_tensor *out)
{
    PyObject *capsule = native_exchange_manage(exchange, object);
    const bool opened = capsule != NULL && open_capsule(capsule, out);
    if (opened) out->exchange = exchange;
    PyErr_Clear();
    return opened;
}

// (dtype, shape), with the device's type and number behind it, and the strides: no array's rows begin so.
static bool is_description(PyObject *tuple)
{
    const Py_ssize_t parts = PyTuple_Size(tuple);
    if (parts != 2 && parts != 4 && parts != 5) return false;
    PyObject *first = PyTuple_GetItem(tuple, 0), *second = PyTuple_GetItem(tuple, 1);
    if (PyList_Check(first) || PyTuple_Check(first)) return false;
    return PyList_Check(second) || PyTuple_Check(second) || !(PyLong_Check(first) || PyFloat_Check(first));
}

bool native_tensor_is_listed(PyObject *object, native_taking taking)
{
    if (Py_IS_TYPE(object, &PyList_Type)) return true;
    return Py_IS_TYPE(object, &PyTuple_Type) && (taking != NATIVE_TO_DESCRIBE || !is_description(object));
}

bool native_tensor_of(PyObject *object, native_taking taking, bool *is_outside_forward, native_tensor *out)
{
    if (taking == NATIVE_TO_DESCRIBE && PyTuple_Check(object) && is_description(object))
        return describe_pair(object, out);
    const known_type *found = find_type(Py_TYPE(object));
    if (found == NULL) return false;
    const known_type known = *found; // another thread may learn types meanwhile
    if (known.is_viewed && open_view(&known, object, taking, is_outside_forward, out)) return true;
    if (taking == NATIVE_QUICKLY) {
        PyErr_SetNone(PyExc_TypeError);
        return false;
    }
    if (known.exporter != Py_None) return open_shown(known.exporter, object, out);
    return (known.exchange != NULL && open_managed(known.exchange, object, out)) || open_array(object, out);
}

bool native_is_torch(PyObject *object)
{
    const known_type *known = find_type(Py_TYPE(object));
    if (known == NULL) PyErr_Clear(); // the next look tells it
    return known != NULL && known->is_torch;
}

bool native_tensor_swap(native_tensor *tensor)
{
    const hone_tensor *from = tensor->tensor;
    int64_t step = 1;
    if (from->ndim != 4) {
        PyErr_Format(PyExc_ValueError, "an array of axes bhsd must have 4 dims, got %d", (int)from->ndim);
        return false;
    }
    int64_t shape[4], strides[4];
    for (int i = 3; i >= 0; step *= from->shape[i--]) {
        int to = i == 1 ? 2 : i == 2 ? 1 : i;
        shape[to] = from->shape[i];
        strides[to] = from->strides != NULL ? from->strides[i] : step;
    }
    tensor->own = *from;
    memcpy(tensor->shape, shape, sizeof shape);
    memcpy(tensor->strides, strides, sizeof strides);
    tensor->own.shape = tensor->shape;
    tensor->own.strides = tensor->strides;
    tensor->tensor = &tensor->own;
    return true;
}

// Types whose objects were found to be writable: almost always the same one.
static PyTypeObject *writable_type;

static bool is_jax(PyTypeObject *type)
{
    PyObject *module = PyObject_GetAttrString((PyObject *)type, "__module__");
    const char *text = module != NULL && PyUnicode_Check(module) ? PyUnicode_AsUTF8AndSize(module, NULL) : NULL;
    bool found = text != NULL && strncmp(text, "jax", 3) == 0;
    Py_XDECREF(module);
    PyErr_Clear();
    return found;
}

bool native_tensor_check_writable(PyObject *object, const native_tensor *tensor, PyObject *name)
{
    PyTypeObject *type = Py_TYPE(object);
    if (type != writable_type && is_jax(type)) {
        PyErr_Format(
            PyExc_TypeError, "%U is a result, and JAX's arrays cannot be written: leave it out, or use hone.jax.call",
            name);
        return false;
    }
    if (tensor->read_only) {
        const bool is_list = PyList_Check(object) || PyTuple_Check(object);
        PyErr_Format(
            PyExc_ValueError,
            "%U is a result and must be an array that can be written, got a %s: leave it out, or give "
            "%s",
            name, is_list ? "list, which is copied" : "read-only one", is_list ? "an array" : "a copy");
        return false;
    }
    if (type == writable_type) return true;
    Py_INCREF((PyObject *)type);
    Py_XDECREF((PyObject *)writable_type);
    writable_type = type;
    return true;
}
