// A layer of a model of torch that hone.torch.replace has put in: from the module and its input to the result, without
// Python's functions and torch's dispatcher, which take several times as long as a small layer does. It runs calls that
// it has learned, of tensors that are nothing but what they say, while nothing in torch sees, records or changes
// operations. All others it leaves to the way through Python, which answers, and then has it learn the call.
#include "native.h"

#include <string.h>

enum { TENSORS = 3, KEY_WORDS = TENSORS * (3 + HONE_MAX_RANK), KNOWN = 16 };

// Dtypes, devices and shapes of the input and of the weights.
typedef struct layer_key {
    int64_t words[KEY_WORDS];
    size_t count;
} layer_key;

typedef struct known_call {
    layer_key key;
    PyObject *like; // a tensor as the result is, without memory; NULL: no call
} known_call;

typedef struct native_torch_layer {
    PyObject_HEAD PyObject *name;        // of the operation, whose first values are the inputs
    PyObject *weights[TENSORS - 1];      // attributes of the module; NULL: no further ones
    size_t weight_values[TENSORS - 1];   // their places among the operation's values
    size_t weight_count, result, number; // number: the place of what `eps` says
    PyObject *eps;                       // name of the module's attribute, a float or None; NULL: the layer has no eps
    double eps_if_none;
    PyObject *attributes;          // of the module, as they were: pairs of name and value
    bool takes_rows;               // dims in front are rows of a matrix
    hone_value values[MAX_VALUES]; // numbers that are the same in every call
    size_t value_count;
    PyObject *name_parameters;
    unsigned long long hits;
    size_t next;
    known_call known[KNOWN];
} native_torch_layer;

// A call while it is made.
typedef struct layer_call {
    native_arguments arguments;
    layer_key key;
} layer_call;

static void add_key(layer_key *key, const hone_tensor *tensor)
{
    int64_t *word = key->words + key->count;
    *word++ = tensor == NULL ? -1
                             : (int64_t)tensor->dtype.code | (int64_t)tensor->dtype.bits << 8 |
                                   (int64_t)tensor->dtype.lanes << 16 | (int64_t)tensor->ndim << 32;
    if (tensor != NULL) {
        *word++ = (int64_t)tensor->device.type << 32 | tensor->device.id;
        memcpy(word, tensor->shape, (size_t)tensor->ndim * sizeof *word);
        word += tensor->ndim;
    }
    key->count = (size_t)(word - key->words);
}

static bool has_plain_rows(const hone_tensor *tensor)
{
    return tensor->ndim > 0 && (tensor->strides == NULL || tensor->strides[tensor->ndim - 1] == 1);
}

// The matrix of all rows. False: they do not lie at one distance.
static bool fold(native_tensor *tensor)
{
    const hone_tensor *from = tensor->tensor;
    const int32_t last = from->ndim - 1;
    int64_t rows = 1, step = 0;
    if (from->ndim == 2) return true;
    if (from->ndim < 2) return false;
    for (int32_t i = last; i-- > 0; rows *= from->shape[i]) {
        if (from->shape[i] == 1 || from->strides == NULL) continue;
        if (step == 0) step = from->strides[i];
        if (from->strides[i] != step * rows) return false;
    }
    tensor->shape[1] = from->shape[last];
    tensor->shape[0] = rows;
    tensor->strides[1] = 1;
    tensor->strides[0] = step != 0 ? step : from->shape[last];
    tensor->own = *from;
    tensor->own.ndim = 2;
    tensor->own.shape = tensor->shape;
    tensor->own.strides = tensor->strides;
    tensor->tensor = &tensor->own;
    return true;
}

static bool take_tensor(layer_call *call, PyObject *object, size_t value, bool is_folded)
{
    native_arguments *arguments = &call->arguments;
    native_tensor *held = &arguments->held[arguments->held_count];
    if (!native_torch_is_of_its_own(object)) return false;
    if (!native_tensor_of(object, NATIVE_QUICKLY, &arguments->is_outside_forward, held)) return false;
    arguments->held_count++;
    add_key(&call->key, held->tensor);
    if (!has_plain_rows(held->tensor) || (is_folded && !fold(held))) return false;
    arguments->objects[value] = object;
    arguments->values[value] = hone_of_tensor(held->tensor);
    return true;
}

// What Module.__getattr__ would find, where nothing lies over it.
static bool take_weights(const native_torch_layer *self, layer_call *call, PyObject *fields)
{
    PyObject *parameters = self->weight_count > 0 ? PyDict_GetItemWithError(fields, self->name_parameters) : NULL;
    if (self->weight_count > 0 && (parameters == NULL || !PyDict_Check(parameters))) return false;
    for (size_t i = 0; i < self->weight_count; i++) {
        PyObject *weight = PyDict_GetItemWithError(parameters, self->weights[i]);
        if (PyDict_GetItemWithError(fields, self->weights[i]) != NULL || PyErr_Occurred() != NULL) return false;
        if (weight == NULL) return false; // a parametrization computes it
        if (weight == Py_None)
            add_key(&call->key, NULL);
        else if (!take_tensor(call, weight, self->weight_values[i], false))
            return false;
    }
    return true;
}

static bool take_numbers(const native_torch_layer *self, layer_call *call, PyObject *fields)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(self->attributes); i++) {
        PyObject *pair = PyTuple_GetItem(self->attributes, i);
        if (PyDict_GetItemWithError(fields, PyTuple_GetItem(pair, 0)) != PyTuple_GetItem(pair, 1)) return false;
    }
    if (self->eps == NULL) return true;
    PyObject *eps = PyDict_GetItemWithError(fields, self->eps);
    if (eps == NULL || (eps != Py_None && !PyFloat_CheckExact(eps))) return false;
    call->arguments.values[self->number] = hone_of_float(eps == Py_None ? self->eps_if_none : PyFloat_AsDouble(eps));
    return true;
}

static void begin(const native_torch_layer *self, layer_call *call)
{
    native_arguments *arguments = &call->arguments;
    arguments->count = self->value_count; // each for itself: all of it are 12 KB
    arguments->held_count = 0;
    arguments->lacks_results = arguments->makes = arguments->asks_axes = arguments->swaps = false;
    arguments->is_outside_forward = true;
    arguments->like = arguments->axes = arguments->stream = arguments->listed = NULL;
    arguments->execution = NULL;
    arguments->lists = arguments->made = 0;
    memset(arguments->objects, 0, self->value_count * sizeof *arguments->objects);
    memcpy(arguments->values, self->values, self->value_count * sizeof *self->values);
    call->key.count = 0;
}

// False, without an exception: this way does not take the call. What was taken is released by the caller in either case.
static bool take(
    const native_torch_layer *self, layer_call *call, PyObject *module, PyObject *const *inputs, Py_ssize_t count)
{
    begin(self, call);
    if (!native_torch_is_ordinary()) return false;
    PyObject *fields = PyObject_GenericGetDict(module, NULL);
    bool taken = fields != NULL && PyDict_Check(fields);
    for (Py_ssize_t i = 0; taken && i < count; i++)
        taken = take_tensor(call, inputs[i], (size_t)i, self->takes_rows);
    taken = taken && take_weights(self, call, fields) && take_numbers(self, call, fields);
    Py_XDECREF(fields);
    if (!taken) PyErr_Clear();
    call->arguments.like = inputs[0];
    return taken;
}

static PyObject *find(const native_torch_layer *self, const layer_key *key)
{
    for (size_t i = 0; i < KNOWN; i++) {
        const known_call *known = &self->known[i];
        if (known->like != NULL && known->key.count == key->count &&
            memcmp(known->key.words, key->words, key->count * sizeof *key->words) == 0)
            return known->like;
    }
    return NULL;
}

static PyObject *run_into(const native_torch_layer *self, layer_call *call, PyObject *result)
{
    native_arguments *arguments = &call->arguments;
    native_tensor *held = &arguments->held[arguments->held_count];
    if (!native_tensor_of(result, NATIVE_MADE, &arguments->is_outside_forward, held)) return NULL;
    arguments->held_count++;
    if (self->takes_rows && !fold(held)) return NULL;
    arguments->objects[self->result] = result;
    arguments->values[self->result] = hone_of_tensor(held->tensor);
    native_operation *operation = native_operation_of_default(self->name);
    PyObject *made = operation != NULL ? native_operation_run_taken(operation, arguments) : NULL;
    Py_XDECREF((PyObject *)operation);
    return made;
}

static bool check_count(const native_torch_layer *self, Py_ssize_t inputs)
{
    if (inputs > 0 && (size_t)inputs + self->weight_count <= TENSORS) return true;
    PyErr_Format(PyExc_TypeError, "expected 1 to %zu inputs, got %zd", TENSORS - self->weight_count, inputs);
    return false;
}

// run(module, *inputs): the result; None where the way through Python has to answer.
static PyObject *method_run(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    native_torch_layer *self = (native_torch_layer *)object;
    layer_call call;
    PyObject *made = NULL;
    if (!check_count(self, count - 1)) return NULL;
    PyObject *like = take(self, &call, args[0], args + 1, count - 1) ? find(self, &call.key) : NULL;
    if (like != NULL) {
        Py_INCREF(like); // another thread may learn meanwhile
        PyObject *result = native_torch_empty_like(like);
        if (result != NULL) made = run_into(self, &call, result);
        Py_XDECREF(result);
        Py_DECREF(like);
        self->hits += made != NULL;
    }
    native_arguments_release(&call.arguments);
    if (like == NULL) Py_RETURN_NONE;
    return made;
}

// learn(like, module, *inputs): a call that the way through Python has answered. like(): a tensor as the result is, without memory.
static PyObject *method_learn(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    native_torch_layer *self = (native_torch_layer *)object;
    layer_call call;
    if (!check_count(self, count - 2)) return NULL;
    const bool is_new = take(self, &call, args[1], args + 2, count - 2) && find(self, &call.key) == NULL;
    native_arguments_release(&call.arguments);
    if (!is_new) Py_RETURN_NONE;
    PyObject *like = PyObject_CallNoArgs(args[0]);
    if (like == NULL) return NULL;
    known_call *known = &self->known[self->next++ % KNOWN];
    PyObject *before = known->like;
    *known = (known_call){.key = call.key, .like = like};
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static PyObject *get_hits(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromUnsignedLongLong(((native_torch_layer *)self)->hits);
}

static int set_hits(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    const unsigned long long hits = value != NULL ? PyLong_AsUnsignedLongLong(value) : 0;
    if (PyErr_Occurred() != NULL) return -1;
    ((native_torch_layer *)self)->hits = hits;
    return 0;
}

// --- life

static void dealloc(PyObject *object)
{
    native_torch_layer *self = (native_torch_layer *)object;
    for (size_t i = 0; i < KNOWN; i++)
        Py_XDECREF(self->known[i].like);
    for (size_t i = 0; i < TENSORS - 1; i++)
        Py_XDECREF(self->weights[i]);
    Py_XDECREF(self->name);
    Py_XDECREF(self->eps);
    Py_XDECREF(self->attributes);
    Py_XDECREF(self->name_parameters);
    native_object_free(object);
}

PyTypeObject *native_torch_layer_make_type(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"run", (PyCFunction)(void (*)(void))method_run, METH_FASTCALL,
         "run(module, *inputs): the result; None where the way through Python has to answer."},
        {"learn", (PyCFunction)(void (*)(void))method_learn, METH_FASTCALL,
         "learn(like, module, *inputs): a call that was answered; like() is a tensor as its result is."},
        {0},
    };
    static PyGetSetDef fields[] = {{"hits", get_hits, set_hits, "Calls that were run.", NULL}, {0}};
    PyType_Slot slots[] = {{Py_tp_dealloc, (void *)dealloc}, {Py_tp_methods, methods}, {Py_tp_getset, fields}, {0}};
    return native_make_type(module, "hone._hone.TorchLayer", sizeof(native_torch_layer), slots);
}

static size_t place_of(const native_operation *operation, PyObject *name)
{
    size_t i = 0;
    while (i < operation->count && PyUnicode_Compare(operation->parameters[i].name, name) != 0)
        i++;
    if (i == operation->count) PyErr_Format(PyExc_ValueError, "%U has no parameter %R", operation->name, name);
    return i;
}

static bool place_weights(native_torch_layer *self, const native_operation *operation, PyObject *weights)
{
    const Py_ssize_t count = PyTuple_Size(weights);
    if (count > TENSORS - 1)
        return PyErr_Format(PyExc_ValueError, "expected at most 2 weights, got %zd", count) != NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *attribute, *parameter;
        if (!PyArg_ParseTuple(PyTuple_GetItem(weights, i), "UU", &attribute, &parameter)) return false;
        self->weights[i] = Py_NewRef(attribute);
        self->weight_values[i] = place_of(operation, parameter);
        self->weight_count++;
        if (PyErr_Occurred() != NULL) return false;
    }
    return true;
}

static bool place_scalars(native_torch_layer *self, const native_operation *operation, PyObject *scalars)
{
    Py_ssize_t at = 0;
    PyObject *name, *value;
    while (PyDict_Next(scalars, &at, &name, &value)) {
        const size_t place = place_of(operation, name);
        if (place == operation->count) return false;
        self->values[place] =
            PyBool_Check(value) ? hone_of_bool(value == Py_True) : hone_of_float(PyFloat_AsDouble(value));
        if (PyErr_Occurred() != NULL) return false;
    }
    self->value_count = operation->count;
    self->result = operation->positional;
    PyObject *eps = self->eps != NULL ? PyUnicode_FromString("eps") : NULL;
    if (eps != NULL) self->number = place_of(operation, eps);
    Py_XDECREF(eps);
    return PyErr_Occurred() == NULL;
}

PyObject *native_torch_layer_new(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *name, *weights, *scalars, *eps, *attributes;
    double eps_if_none;
    int takes_rows;
    if (!PyArg_ParseTuple(
            args, "UO!O!OdO!p", &name, &PyTuple_Type, &weights, &PyDict_Type, &scalars, &eps, &eps_if_none,
            &PyTuple_Type, &attributes, &takes_rows))
        return NULL;
    native_operation *operation = native_operation_of_default(name);
    native_torch_layer *self = operation != NULL ? PyObject_New(native_torch_layer, native.torch_layer_type) : NULL;
    if (self != NULL) {
        memset((char *)self + sizeof(PyObject), 0, sizeof *self - sizeof(PyObject));
        self->name = Py_NewRef(name);
        self->attributes = Py_NewRef(attributes);
        self->eps_if_none = eps_if_none;
        self->takes_rows = takes_rows != 0;
        self->name_parameters = PyUnicode_InternFromString("_parameters");
        self->eps = eps != Py_None ? Py_NewRef(eps) : NULL;
        if (!place_weights(self, operation, weights) || !place_scalars(self, operation, scalars)) Py_CLEAR(self);
    }
    Py_XDECREF((PyObject *)operation);
    return (PyObject *)self;
}
