// Arrays whose type brings DLPack's table of C functions: shown without a capsule, and with their framework's current
// stream. And the looks at a tensor of torch that tell whether it is what its shape and memory say, at the price of a
// few loads each.
#include "native.h"

#include <string.h>

// DLPack 1.3, dlpack.h: DLPackExchangeAPI.
struct native_exchange {
    uint32_t major, minor;
    const struct native_exchange *previous; // of an older major version, or NULL
    void *allocate;
    int (*manage)(void *object, native_managed_tensor **out);
    void *make_object;
    int (*view)(void *object, hone_tensor *out); // NULL: the type has only what owns its tensor
    int (*current_stream)(int32_t device_type, int32_t device_id, void **out);
};

static const native_exchange *readable_version(const native_exchange *exchange)
{
    while (exchange != NULL && exchange->major != 1)
        exchange = exchange->previous;
    return exchange;
}

const native_exchange *native_exchange_of(PyTypeObject *type)
{
    PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
    const native_exchange *exchange = NULL;
    if (capsule != NULL && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
        exchange = readable_version(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
    Py_XDECREF(capsule);
    PyErr_Clear();
    return exchange;
}

bool native_exchange_current_stream(const native_exchange *exchange, hone_device device, void **out)
{
    return exchange->current_stream((int32_t)device.type, device.id, out) == 0;
}

static bool is_empty(const hone_tensor *tensor)
{
    for (int32_t i = 0; i < tensor->ndim; i++)
        if (tensor->shape[i] == 0) return true;
    return false;
}

// --- with an owner, and flags

// Also on the way of an exception, which is not the deleter's.
static void delete_managed(PyObject *capsule)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    native_managed_tensor *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (managed != NULL && managed->deleter != NULL) managed->deleter(managed);
    PyErr_Restore(type, value, trace);
}

PyObject *native_exchange_manage(const native_exchange *exchange, PyObject *object)
{
    native_managed_tensor *managed = NULL;
    if (exchange->manage(object, &managed) != 0) return NULL;
    PyObject *capsule = PyCapsule_New(managed, "dltensor_versioned", delete_managed);
    if (capsule == NULL && managed->deleter != NULL) managed->deleter(managed);
    return capsule;
}

// --- looks at a tensor of torch

// Functions of torch's own that Python would call for an attribute, called without the way there.
static struct {
    bool known;
    getter requires_grad;
    void *requires_grad_closure;
    PyCFunction is_neg, is_conj, is_grad_enabled;
    PyObject *forward_ad, *name_level; // the dict of torch.autograd.forward_ad
    PyCFunction count_modes;           // NULL: they are asked for in Python
    PyTypeObject *parameter_type;
    PyTypeObject *tensor_type; // torch.Tensor
    PyObject *empty_like, *name_new_empty, *modes, *raise_versions;
    PyCFunction count_function_modes, is_autocast;
    PyObject *transform, *trace; // what says the innermost of torch.func's, the graph of torch.jit.trace; else None
    PyObject *profiler, *name_is_profiled; // the dict of torch.autograd.profiler
    PyCFunction raise_versions_of; // the same without the way there, of an iterable; NULL: it is called as Python does
} looks;

static PyCFunction plain_method(PyMethodDef *method, const char *name)
{
    for (; method != NULL && method->ml_name != NULL; method++)
        if (strcmp(method->ml_name, name) == 0 && method->ml_flags == METH_NOARGS) return method->ml_meth;
    return NULL;
}

static void find_in_type(PyTypeObject *type)
{
    PyMethodDef *methods = PyType_GetSlot(type, Py_tp_methods);
    PyGetSetDef *fields = PyType_GetSlot(type, Py_tp_getset);
    if (looks.is_neg == NULL) looks.is_neg = plain_method(methods, "is_neg");
    if (looks.is_conj == NULL) looks.is_conj = plain_method(methods, "is_conj");
    for (; looks.requires_grad == NULL && fields != NULL && fields->name != NULL; fields++) {
        if (strcmp(fields->name, "requires_grad") != 0) continue;
        looks.requires_grad = fields->get;
        looks.requires_grad_closure = fields->closure;
    }
}

static PyObject *module_attribute(const char *module_name, const char *name)
{
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *value = module != NULL ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    return value;
}

// The C function that a Python object wraps; NULL unless it wraps one with these flags.
static PyCFunction plain_function(PyObject *function, int flags)
{
    if (function == NULL || !Py_IS_TYPE(function, &PyCFunction_Type)) return NULL;
    return PyCFunction_GetFlags(function) == flags ? PyCFunction_GetFunction(function) : NULL;
}

// What is kept of torch stays: modules of C are not unloaded.
static void find_functions(void)
{
    looks.is_grad_enabled = plain_function(module_attribute("torch", "is_grad_enabled"), METH_NOARGS);
    looks.modes = module_attribute("torch._C", "_len_torch_dispatch_stack");
    looks.count_modes = plain_function(looks.modes, METH_NOARGS);
    looks.empty_like = module_attribute("torch", "empty_like");
    looks.raise_versions = module_attribute("torch._C", "_increment_version");
    looks.raise_versions_of = plain_function(looks.raise_versions, METH_O);
    if (looks.raise_versions == NULL)
        looks.raise_versions = module_attribute("torch.autograd.graph", "increment_version");
    looks.tensor_type = (PyTypeObject *)module_attribute("torch", "Tensor");
    looks.parameter_type = (PyTypeObject *)module_attribute("torch.nn", "Parameter");
    looks.forward_ad = module_attribute("torch.autograd.forward_ad", "__dict__");
    looks.name_level = PyUnicode_InternFromString("_current_level");
    looks.count_function_modes = plain_function(module_attribute("torch._C", "_len_torch_function_stack"), METH_NOARGS);
    looks.is_autocast = plain_function(module_attribute("torch._C", "_is_any_autocast_enabled"), METH_NOARGS);
    looks.transform = module_attribute("torch._C._functorch", "peek_interpreter_stack");
    looks.trace = module_attribute("torch._C", "_get_tracing_state");
    looks.profiler = module_attribute("torch.autograd.profiler", "__dict__");
    looks.name_is_profiled = PyUnicode_InternFromString("_is_profiler_enabled");
    looks.name_new_empty = PyUnicode_InternFromString("new_empty");
    PyErr_Clear();
}

bool native_torch_learn(PyTypeObject *type)
{
    if (looks.known) return true;
    for (; type != NULL; type = PyType_GetSlot(type, Py_tp_base))
        find_in_type(type);
    if (looks.tensor_type == NULL) find_functions();
    looks.known = looks.requires_grad != NULL && looks.is_neg != NULL && looks.is_conj != NULL &&
                  looks.is_grad_enabled != NULL && looks.forward_ad != NULL && looks.name_level != NULL;
    return looks.known;
}

// Takes the object that a look gave.
static bool said_no(PyObject *answer)
{
    Py_XDECREF(answer);
    return answer == Py_False;
}

bool native_torch_is_forward(void)
{
    PyObject *level = PyDict_GetItemWithError(looks.forward_ad, looks.name_level);
    return level == NULL || PyLong_AsLong(level) >= 0;
}

static bool records_gradient(PyObject *tensor)
{
    return !said_no(looks.requires_grad(tensor, looks.requires_grad_closure)) &&
           !said_no(looks.is_grad_enabled(NULL, NULL));
}

// Tensors that were found without the bit that negates them: asking torch gives up the interpreter's lock, which takes
// longer than the rest. An object that lives on over the same memory keeps the bit. Parameters are asked each time:
// torch.utils.swap_tensors, by which modules change their dtype or device, refuses what has a weak reference.
static struct {
    PyObject *object, *reference; // borrowed, to be compared; weak, once the object was met twice
    const void *data;
} positive[64];

static void remember_positive(size_t slot, PyObject *tensor, const void *data, bool met)
{
    PyObject *reference = met ? PyWeakref_NewRef(tensor, NULL) : NULL;
    PyErr_Clear();
    PyObject *before = positive[slot].reference; // read behind what may have let another thread in
    positive[slot].object = tensor;
    positive[slot].data = data;
    positive[slot].reference = reference;
    Py_XDECREF(before);
}

static bool is_positive(PyObject *tensor, const void *data)
{
    if (!Py_IS_TYPE(tensor, looks.tensor_type)) return said_no(looks.is_neg(tensor, NULL));
    const size_t slot = (size_t)((uint64_t)(uintptr_t)tensor * 0x9E3779B97F4A7C15u >> 58);
    const bool met = positive[slot].object == tensor && positive[slot].data == data;
    PyObject *reference = met ? positive[slot].reference : NULL;
    if (reference != NULL && PyWeakref_GetObject(reference) == tensor) return true;
    if (!said_no(looks.is_neg(tensor, NULL))) return false;
    remember_positive(slot, tensor, data, met && reference == NULL);
    return true;
}

bool native_torch_is_plain(PyObject *tensor, const hone_tensor *view)
{
    if (view->data == NULL && !is_empty(view)) return false; // of zeros, of functionalize, whose storage was given up
    if (records_gradient(tensor)) return false;
    return is_positive(tensor, view->data) &&
           (view->dtype.code != HONE_CODE_COMPLEX || said_no(looks.is_conj(tensor, NULL)));
}

// --- tensors of torch

bool native_torch_is_recording(void)
{
    PyObject *count = NULL;
    if (looks.count_modes != NULL)
        count = looks.count_modes(NULL, NULL);
    else if (looks.modes != NULL)
        count = PyObject_CallNoArgs(looks.modes);
    const bool none = count != NULL && PyLong_AsLong(count) == 0;
    Py_XDECREF(count);
    PyErr_Clear();
    return !none;
}

static bool said_none(PyObject *function)
{
    PyObject *answer = function != NULL ? PyObject_CallNoArgs(function) : NULL;
    Py_XDECREF(answer);
    return answer == Py_None;
}

bool native_torch_is_ordinary(void)
{
    if (!looks.known || looks.count_function_modes == NULL || looks.is_autocast == NULL || looks.profiler == NULL)
        return false;
    PyObject *modes = looks.count_function_modes(NULL, NULL);
    const bool has_none = modes != NULL && PyLong_AsLong(modes) == 0;
    Py_XDECREF(modes);
    const bool is_ordinary = has_none && !native_torch_is_recording() && !native_torch_is_forward() &&
                             said_no(looks.is_autocast(NULL, NULL)) && said_none(looks.transform) &&
                             said_none(looks.trace) &&
                             PyDict_GetItemWithError(looks.profiler, looks.name_is_profiled) == Py_False;
    PyErr_Clear();
    return is_ordinary;
}

// What torch's function goes through: a tuple and its iterator would take as long as all else of the call.
typedef struct native_written {
    PyObject_HEAD PyObject *const *tensors; // borrowed; NULL: nobody goes through it
    size_t at, count;
} native_written;

static native_written *written; // one, lent to one call at a time

static PyObject *next_written(PyObject *object)
{
    native_written *self = (native_written *)object;
    return self->tensors != NULL && self->at < self->count ? Py_NewRef(self->tensors[self->at++]) : NULL;
}

static native_written *make_written(void)
{
    PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)native_object_free},
        {Py_tp_iter, (void *)PyObject_SelfIter},
        {Py_tp_iternext, (void *)next_written},
        {0},
    };
    PyType_Spec spec = {
        .name = "hone._hone.Written",
        .basicsize = (int)sizeof(native_written),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    PyObject *type = PyType_FromSpec(&spec);
    native_written *made = type != NULL ? PyObject_New(native_written, (PyTypeObject *)type) : NULL;
    Py_XDECREF(type);
    if (made != NULL) made->tensors = NULL;
    return made;
}

static PyObject *raise_versions(PyObject *tensors)
{
    if (looks.raise_versions_of == NULL) return PyObject_CallFunctionObjArgs(looks.raise_versions, tensors, NULL);
    return looks.raise_versions_of(PyCFunction_GetSelf(looks.raise_versions), tensors);
}

// One that was made in inference mode has no version: nothing has recorded it, and torch refuses to raise it elsewhere.
static bool all_are_recorded_nowhere(PyObject *const *tensors, size_t count)
{
    PyObject *exception = native_take_exception();
    bool all = true;
    for (size_t i = 0; i < count && all; i++) {
        PyObject *answer = PyObject_CallMethod(tensors[i], "is_inference", NULL);
        all = answer == Py_True;
        Py_XDECREF(answer);
    }
    PyErr_Clear();
    if (!all) PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(exception);
    return all;
}

bool native_torch_raise_versions(PyObject *const *tensors, size_t count)
{
    if (written == NULL && (written = make_written()) == NULL) return false;
    native_written *mine = written->tensors == NULL ? written : make_written(); // a class's own look may let others in
    if (mine == NULL) return false;
    mine->tensors = tensors;
    mine->at = 0;
    mine->count = count;
    PyObject *done = raise_versions((PyObject *)mine);
    mine->tensors = NULL;
    if (mine != written) Py_DECREF((PyObject *)mine);
    Py_XDECREF(done);
    return done != NULL || all_are_recorded_nowhere(tensors, count);
}

bool native_torch_is_of_its_own(PyObject *object)
{
    return Py_IS_TYPE(object, looks.tensor_type) || Py_IS_TYPE(object, looks.parameter_type);
}

bool native_torch_is_tensor(PyObject *object)
{
    return looks.tensor_type != NULL && PyObject_TypeCheck(object, looks.tensor_type);
}

static bool is_like(const hone_tensor *view, const native_made_result *wanted)
{
    int64_t step = 1;
    if (view->ndim != wanted->ndim || memcmp(&view->dtype, &wanted->element, sizeof view->dtype) != 0) return false;
    for (int32_t i = view->ndim; i-- > 0; step *= view->shape[i]) {
        const int64_t stride = view->strides != NULL ? view->strides[i] : step;
        if (view->shape[i] != wanted->dims[i] || (stride != step && view->shape[i] != 1)) return false;
    }
    return true;
}

PyObject *native_torch_empty_like(PyObject *like)
{
    return PyObject_CallFunctionObjArgs(looks.empty_like, like, NULL);
}

PyObject *native_torch_empty(PyObject *like, const hone_tensor *view, const native_made_result *wanted)
{
    if (looks.tensor_type == NULL || Py_TYPE(like) != looks.tensor_type || !is_like(view, wanted)) return NULL;
    PyObject *made = PyObject_CallFunctionObjArgs(looks.empty_like, like, NULL);
    PyErr_Clear();
    return made;
}

PyObject *native_torch_new_empty(PyObject *like, const hone_tensor *view, const native_made_result *wanted)
{
    const bool is_same_type = memcmp(&view->dtype, &wanted->element, sizeof view->dtype) == 0;
    if (looks.tensor_type == NULL || Py_TYPE(like) != looks.tensor_type || !is_same_type) return NULL;
    PyObject *made = PyObject_CallMethodObjArgs(like, looks.name_new_empty, wanted->shape, NULL);
    PyErr_Clear();
    return made;
}

// --- without an owner

bool native_exchange_view(const native_exchange *exchange, PyObject *object, native_tensor *out)
{
    if (exchange->view == NULL) return false;
    if (exchange->view(object, &out->own) != 0) {
        PyErr_Clear(); // the way through Python says it in hone's words
        return false;
    }
    out->tensor = &out->own;
    out->owner = Py_NewRef(object);
    out->exchange = exchange;
    out->read_only = false;
    return true;
}
