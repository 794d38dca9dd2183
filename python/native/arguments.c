// Arguments of Python in the order of values in C: parameters, results, keyword-only parameters.
#include "native.h"

static bool fail_kind(const native_parameter *parameter, const char *asked, PyObject *object)
{
    return native_fail_type(parameter->name, asked, object);
}

// What the conversion of a number says does not name the parameter; exceptions of the number's own stay as they are.
static bool fail_number(const native_parameter *parameter, const char *asked, PyObject *object)
{
    PyObject *type, *value, *trace, *kind = NULL;
    PyErr_Fetch(&type, &value, &trace);
    if (type == PyExc_TypeError || type == PyExc_OverflowError) kind = PyType_GetName(Py_TYPE(object));
    if (kind == NULL) {
        PyErr_Restore(type, value, trace);
        return false;
    }
    PyErr_Format(type, "%U must be %s, got %U: %S", parameter->name, asked, kind, value);
    Py_DECREF(kind);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return false;
}

static bool take_bool(const native_parameter *parameter, PyObject *object, hone_value *out)
{
    if (!PyBool_Check(object)) {
        // numpy.bool_ and the like: what counts as an index is a number, and means something else.
        PyObject *type = (PyObject *)Py_TYPE(object), *name = PyObject_GetAttrString(type, "__name__");
        bool truth = name != NULL && PyUnicode_Check(name) &&
                     (PyUnicode_CompareWithASCIIString(name, "bool_") == 0 ||
                      PyUnicode_CompareWithASCIIString(name, "bool") == 0);
        Py_XDECREF(name);
        PyErr_Clear();
        if (!truth) return fail_kind(parameter, "a bool", object);
    }
    *out = hone_of_bool(PyObject_IsTrue(object) == 1);
    return true;
}

static bool take_int(const native_parameter *parameter, PyObject *object, hone_value *out)
{
    if (PyBool_Check(object) || !PyIndex_Check(object)) return fail_kind(parameter, "an int", object);
    PyObject *index = PyNumber_Index(object);
    int64_t value = index != NULL ? PyLong_AsLongLong(index) : -1;
    Py_XDECREF(index);
    if (value == -1 && PyErr_Occurred() != NULL) return fail_number(parameter, "an int of 64 bits", object);
    *out = hone_of_int(value);
    return true;
}

static bool take_float(const native_parameter *parameter, PyObject *object, hone_value *out)
{
    if (PyBool_Check(object) || PyUnicode_Check(object)) return fail_kind(parameter, "a float", object);
    double value = PyFloat_AsDouble(object);
    if (value == -1.0 && PyErr_Occurred() != NULL) return fail_number(parameter, "a float", object);
    *out = hone_of_float(value);
    return true;
}

static bool take_string(const native_parameter *parameter, PyObject *object, hone_value *out)
{
    if (!PyUnicode_Check(object)) return fail_kind(parameter, "a str", object);
    const char *text = native_utf8(object);
    if (text != NULL) *out = hone_of_string(text);
    return text != NULL;
}

bool native_arguments_name(const native_parameter *parameter)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (type != PyExc_BufferError && type != PyExc_TypeError) {
        PyErr_Restore(type, value, trace);
        return false;
    }
    PyErr_Format(type, "%U: %S", parameter->name, value);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return false;
}

static bool fail_axes(const native_parameter *parameter)
{
    PyErr_Format(
        PyExc_TypeError,
        "%U: torch's function of this name takes (batch, heads, sequence, dim), and hone's (batch, sequence, heads, "
        "dim): "
        "say what this tensor of torch is, with axes=\"bhsd\" for torch's order or axes=\"bshd\" for hone's",
        parameter->name);
    return false;
}

static bool take_tensor(
    native_arguments *out, const native_parameter *parameter, PyObject *object, size_t i, native_taking taking)
{
    native_tensor *tensor = &out->held[out->held_count];
    if (!parameter->is_result && taking != NATIVE_QUICKLY && native_tensor_is_listed(object, taking)) {
        out->lists |= UINT64_C(1) << i; // its dtype is told by the others
        return true;
    }
    if (out->asks_axes && native_is_torch(object)) return fail_axes(parameter);
    if (!native_tensor_of(object, taking, &out->is_outside_forward, tensor))
        return taking != NATIVE_QUICKLY && native_arguments_name(parameter);
    out->held_count++;
    if (out->swaps && !native_tensor_swap(tensor)) return native_arguments_name(parameter);
    if (parameter->is_result && !out->makes && !native_tensor_check_writable(object, tensor, parameter->name))
        return false;
    if (out->like == NULL) out->like = object;
    out->values[i] = hone_of_tensor(tensor->tensor);
    return true;
}

static bool take(
    native_arguments *out, const native_parameter *parameter, PyObject *object, size_t i, native_taking taking)
{
    static bool (*const scalars[])(const native_parameter *parameter, PyObject *object, hone_value *out) = {
        [HONE_KIND_BOOL] = take_bool,
        [HONE_KIND_INT] = take_int,
        [HONE_KIND_FLOAT] = take_float,
        [HONE_KIND_STRING] = take_string,
    };
    if (out->objects[i] != NULL) {
        PyErr_Format(PyExc_TypeError, "%U is given twice, by position and by name", parameter->name);
        return false;
    }
    out->objects[i] = object;
    if (i >= out->count) out->count = i + 1;
    if (object == Py_None) return true;
    if (parameter->kind == HONE_KIND_TENSOR) return take_tensor(out, parameter, object, i, taking);
    return scalars[parameter->kind](parameter, object, &out->values[i]);
}

static bool fail_count(const native_operation *operation, Py_ssize_t count)
{
    size_t most = 0;
    while (most < operation->count && !operation->parameters[most].keyword_only)
        most++;
    PyErr_Format(
        PyExc_TypeError, "%U takes at most %zu arguments by position, got %zd; its signature is %s", operation->name,
        most, count, hone_signature_text(operation->signature));
    return false;
}

// Names are interned almost always, so that a pointer tells.
static size_t find(const native_operation *operation, PyObject *name)
{
    for (size_t i = 0; i < operation->count; i++)
        if (operation->parameters[i].name == name) return i;
    for (size_t i = 0; i < operation->count; i++)
        if (PyUnicode_Compare(operation->parameters[i].name, name) == 0) return i;
    return operation->count;
}

static bool take_keyword(
    native_arguments *out, native_operation *operation, PyObject *name, PyObject *object, native_taking taking)
{
    size_t i = find(operation, name);
    if (i < operation->count) return take(out, &operation->parameters[i], object, i, taking);
    if (PyErr_Occurred() != NULL) return false;
    if (taking != NATIVE_TO_DESCRIBE && PyUnicode_CompareWithASCIIString(name, "stream") == 0) {
        out->stream = object;
        return true;
    }
    if (operation->asks_axes && PyUnicode_CompareWithASCIIString(name, "axes") == 0) return true; // read already
    PyErr_Format(
        PyExc_TypeError, "%U has no parameter %R; its signature is %s", operation->name, name,
        hone_signature_text(operation->signature));
    return false;
}

// Before any array is taken. "bshd" is the signature's order, "bhsd" torch's.
static bool read_axes(
    native_arguments *out, const native_operation *operation, PyObject *const *keywords, PyObject *keyword_names)
{
    Py_ssize_t count = operation->asks_axes && keyword_names != NULL ? PyTuple_Size(keyword_names) : 0;
    for (Py_ssize_t i = 0; i < count; i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GetItem(keyword_names, i), "axes") == 0) out->axes = keywords[i];
    if (out->axes == NULL || out->axes == Py_None) {
        out->axes = NULL;
        return true;
    }
    out->swaps = PyUnicode_Check(out->axes) && PyUnicode_CompareWithASCIIString(out->axes, "bhsd") == 0;
    if (out->swaps || (PyUnicode_Check(out->axes) && PyUnicode_CompareWithASCIIString(out->axes, "bshd") == 0))
        return true;
    PyErr_Format(
        PyExc_ValueError,
        "axes must be \"bshd\" (batch, sequence, heads, dim: %U's own order) or \"bhsd\" (torch's), got %R",
        operation->name, out->axes);
    return false;
}

// Results may be given behind the parameters; keyword-only parameters may not.
static bool take_all(
    native_arguments *out,
    native_operation *operation,
    PyObject *const *args,
    Py_ssize_t count,
    PyObject *keyword_names,
    native_taking taking)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        if ((size_t)i >= operation->count || operation->parameters[i].keyword_only) return fail_count(operation, count);
        if (!take(out, &operation->parameters[i], args[i], (size_t)i, taking)) return false;
    }
    Py_ssize_t keywords = keyword_names != NULL ? PyTuple_Size(keyword_names) : 0;
    for (Py_ssize_t i = 0; i < keywords; i++)
        if (!take_keyword(out, operation, PyTuple_GetItem(keyword_names, i), args[count + i], taking)) return false;
    return true;
}

// Those that were taken: (type text, dtype, array).
static PyObject *arrays_taken(const native_arguments *arguments, const native_operation *operation)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < arguments->count; i++) {
        const hone_value *value = &arguments->values[i];
        if (value->tag != HONE_VALUE_TENSOR || arguments->objects[i] == NULL) continue;
        const hone_dtype_info *info = hone_dtype_find(value->as.tensor->dtype);
        if (info == NULL) continue;
        native_append(
            &list, Py_BuildValue(
                       "(ssO)", hone_signature_parameter(operation->signature, i)->type_text, info->numpy_name,
                       arguments->objects[i]));
    }
    return list;
}

PyObject *native_arguments_listed(
    native_arguments *arguments, PyObject *list, const char *type_text, const char *signature, PyObject *taken)
{
    PyObject *array =
        taken != NULL ? PyObject_CallFunction(native.listed, "OssO", list, type_text, signature, taken) : NULL;
    Py_XDECREF(taken);
    if (array == NULL) return NULL;
    if (arguments->listed == NULL) arguments->listed = PyList_New(0);
    const bool kept = arguments->listed != NULL && PyList_Append(arguments->listed, array) == 0;
    Py_DECREF(array);
    return kept ? array : NULL;
}

static bool take_lists(native_arguments *out, native_operation *operation, native_taking taking)
{
    const uint64_t lists = out->lists;
    for (size_t i = 0; i < operation->count; i++) {
        if ((lists >> i & 1) == 0) continue;
        PyObject *array = native_arguments_listed(
            out, out->objects[i], hone_signature_parameter(operation->signature, i)->type_text,
            hone_signature_text(operation->signature), arrays_taken(out, operation));
        if (array == NULL) return native_arguments_name(&operation->parameters[i]);
        out->objects[i] = array;
        if (!take_tensor(out, &operation->parameters[i], array, i, taking)) return false;
    }
    return true;
}

bool native_arguments_take(
    native_arguments *out,
    native_operation *operation,
    PyObject *const *args,
    Py_ssize_t count,
    PyObject *keyword_names,
    native_taking taking)
{
    out->count = out->held_count = 0;
    out->like = out->axes = out->stream = NULL;
    out->execution = NULL;
    out->lacks_results = out->makes = out->swaps = false;
    out->made = out->lists = 0;
    out->listed = NULL;
    out->is_outside_forward = false;
    for (size_t i = 0; i < operation->count; i++) {
        out->values[i] = hone_of_none();
        out->objects[i] = NULL;
    }
    if (!read_axes(out, operation, args + count, keyword_names)) return false;
    out->asks_axes = operation->asks_axes && out->axes == NULL;
    if (!take_all(out, operation, args, count, keyword_names, taking) ||
        (out->lists != 0 && !take_lists(out, operation, taking))) {
        native_arguments_release(out);
        return false;
    }
    for (size_t i = operation->positional; i < operation->count && operation->parameters[i].is_result; i++)
        out->lacks_results |= out->values[i].tag == HONE_VALUE_NONE;
    return true;
}

void native_arguments_release(native_arguments *arguments)
{
    for (size_t i = 0; i < arguments->held_count; i++)
        Py_XDECREF(arguments->held[i].owner);
    arguments->held_count = 0;
    Py_CLEAR(arguments->listed);
}

bool native_arguments_describe(const native_arguments *arguments, native_operation *operation, hone_call **out)
{
    hone_error err;
    hone_allocator allocator = {0};
    hone_status status =
        hone_call_bind(allocator, operation->signature, arguments->values, arguments->count, true, out, &err);
    if (status != HONE_OK) native_raise(&err);
    return status == HONE_OK;
}

static PyObject *allocate(const native_arguments *arguments, const native_made_result *result)
{
    PyObject *like = arguments->like != NULL ? arguments->like : Py_None, *made = NULL;
    PyObject *stream = arguments->execution != NULL ? arguments->execution->stream : NULL;
    const bool is_first = stream == NULL && arguments->held_count > 0 && arguments->objects[0] == like;
    if (is_first) made = native_torch_empty(like, arguments->held[0].tensor, result);
    if (made != NULL) return made;
    if (result->like == Py_TYPE(like))
        return PyObject_CallFunctionObjArgs(result->maker, result->shape, result->maker_dtype, NULL);
    if (is_first) made = native_torch_new_empty(like, arguments->held[0].tensor, result);
    if (made == NULL)
        made = PyObject_CallFunctionObjArgs(
            native.allocate, like, result->dtype, result->shape, stream != NULL ? stream : Py_None, NULL);
    if (made == NULL || !result->is_turned) return made;
    PyObject *turned = PyObject_CallMethod(made, "transpose", "ii", 1, 2);
    Py_DECREF(made);
    return turned;
}

// made[i] owns the results that were made here.
static bool allocate_results(native_arguments *arguments, native_operation *operation, PyObject **made)
{
    native_made *results = native_made_find(operation, arguments);
    if (results == NULL) return false;
    bool done = true;
    arguments->makes = true;
    for (size_t i = operation->positional; done && i < operation->count && operation->parameters[i].is_result; i++) {
        if (arguments->values[i].tag != HONE_VALUE_NONE) continue;
        made[i] = allocate(arguments, &results->results[i - operation->positional]);
        arguments->objects[i] = NULL;
        arguments->made |= UINT64_C(1) << i;
        done = made[i] != NULL && take(arguments, &operation->parameters[i], made[i], i, NATIVE_MADE);
    }
    arguments->makes = false;
    native_made_release(results);
    return done;
}

PyObject *native_arguments_results(native_arguments *arguments, native_operation *operation, PyObject **made)
{
    if (arguments->lacks_results && !allocate_results(arguments, operation, made)) return NULL;
    size_t first = operation->positional, last = first;
    while (last < operation->count && operation->parameters[last].is_result)
        last++;
    if (last == first + 1) {
        Py_INCREF(arguments->objects[first]);
        return arguments->objects[first];
    }
    PyObject *results = PyTuple_New((Py_ssize_t)(last - first));
    for (size_t i = first; results != NULL && i < last; i++) {
        Py_INCREF(arguments->objects[i]);
        PyTuple_SetItem(results, (Py_ssize_t)(i - first), arguments->objects[i]);
    }
    return results;
}

bool native_arguments_written(const native_arguments *arguments, const native_operation *operation)
{
    PyObject *tensors[MAX_VALUES];
    size_t count = 0;
    for (size_t i = operation->positional; i < operation->count; i++)
        if (operation->parameters[i].is_result && arguments->objects[i] != NULL && (arguments->made >> i & 1) == 0 &&
            native_torch_is_tensor(arguments->objects[i]))
            tensors[count++] = arguments->objects[i];
    return count == 0 || native_torch_raise_versions(tensors, count);
}
