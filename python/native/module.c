// The module hone._hone.
#include "native.h"

#include <string.h>

native_state native;

void native_object_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF((PyObject *)type);
}

PyObject *native_text(const char *text)
{
    if (text == NULL) Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

void native_append(PyObject **list, PyObject *item)
{
    if (item == NULL || *list == NULL || PyList_Append(*list, item) != 0) Py_CLEAR(*list);
    Py_XDECREF(item);
}

const char *native_utf8(PyObject *text)
{
    Py_ssize_t size = 0;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &size);
    if (utf8 == NULL || strlen(utf8) == (size_t)size) return utf8;
    PyErr_Format(PyExc_ValueError, "expected a text without a null character, got %R", text);
    return NULL;
}

bool native_fail_type(PyObject *name, const char *expected, PyObject *object)
{
    PyObject *type = PyType_GetName(Py_TYPE(object));
    if (type != NULL) PyErr_Format(PyExc_TypeError, "%U must be %s, got %U", name, expected, type);
    Py_XDECREF(type);
    return false;
}

// --- functions of the module: those of its runtime, without a look-up on the way

static native_runtime *default_runtime(void)
{
    if (native.runtime != NULL) return native.runtime;
    PyObject *made = PyObject_CallNoArgs(native.default_runtime);
    Py_XDECREF(made); // native.runtime has it
    if (made != NULL && native.runtime == NULL) PyErr_SetString(PyExc_RuntimeError, "no runtime was set");
    return native.runtime;
}

native_operation *native_operation_of_default(PyObject *name)
{
    native_runtime *runtime = default_runtime();
    if (runtime == NULL) return NULL;
    Py_INCREF((PyObject *)runtime);
    native_operation *operation = native_operation_find(runtime, name);
    Py_XINCREF((PyObject *)operation);
    Py_DECREF((PyObject *)runtime);
    return operation;
}

static PyObject *with_operation(
    native_operation_function *function, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    native_runtime *runtime = default_runtime();
    return runtime != NULL ? native_with_operation(runtime, function, args, count, names) : NULL;
}

static PyObject *run(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    (void)module;
    return with_operation(native_operation_run, args, count, names);
}

static PyObject *bind(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    (void)module;
    return with_operation(native_operation_bind, args, count, names);
}

static PyObject *call(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    (void)module;
    return with_operation(native_operation_call, args, count, names);
}

// use(runtime or None): the runtime of the module's functions.
static PyObject *use(PyObject *module, PyObject *runtime)
{
    (void)module;
    if (runtime != Py_None && !PyObject_TypeCheck(runtime, native.runtime_type)) {
        PyErr_Format(PyExc_TypeError, "expected a hone.Runtime or None, got %R", runtime);
        return NULL;
    }
    native_runtime *before = native.runtime;
    native.runtime = runtime != Py_None ? (native_runtime *)runtime : NULL;
    Py_XINCREF((PyObject *)native.runtime);
    Py_XDECREF((PyObject *)before);
    Py_RETURN_NONE;
}

static PyObject *contexts_used(PyObject *module, PyObject *none)
{
    (void)module, (void)none;
    native.contexts_used = true;
    Py_RETURN_NONE;
}

static PyObject *version(PyObject *module, PyObject *none)
{
    (void)module, (void)none;
    return native_text(hone_version());
}

// setup(errors, context_variable, default_runtime, log, allocate, maker, exporter, show_torch, show_cupy, choose_stream, listed):
// what the Python
// side brings.
static PyObject *setup(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *errors;
    if (!PyArg_ParseTuple(
            args, "OOOOOOOOOOO", &errors, &native.context_variable, &native.default_runtime, &native.log,
            &native.allocate, &native.maker, &native.exporter, &native.show_torch, &native.show_cupy,
            &native.choose_stream, &native.listed))
        return NULL;
    if (!PyTuple_Check(errors) || PyTuple_Size(errors) != HONE_KERNEL_FAILED + 1)
        return PyErr_Format(PyExc_TypeError, "one exception class a status is asked for");
    for (Py_ssize_t i = 0; i <= HONE_KERNEL_FAILED; i++) {
        native.errors[i] = PyTuple_GetItem(errors, i);
        Py_INCREF(native.errors[i]);
    }
    Py_INCREF(native.context_variable);
    Py_INCREF(native.default_runtime);
    Py_INCREF(native.log);
    Py_INCREF(native.allocate);
    Py_INCREF(native.maker);
    Py_INCREF(native.exporter);
    Py_INCREF(native.show_torch);
    Py_INCREF(native.show_cupy);
    Py_INCREF(native.choose_stream);
    Py_INCREF(native.listed);
    Py_RETURN_NONE;
}

// --- making the module

static bool make_names(void)
{
    if (native.versioned_arguments != NULL) return true;
    native.name_dlpack = PyUnicode_InternFromString("__dlpack__");
    native.name_get = PyUnicode_InternFromString("get");
    native.unversioned_arguments = PyTuple_New(0);
    native.versioned_arguments = Py_BuildValue("{s:(ii)}", "max_version", 1, 1);
    return native.name_dlpack != NULL && native.name_get != NULL && native.unversioned_arguments != NULL &&
           native.versioned_arguments != NULL;
}

PyTypeObject *native_make_type(PyObject *module, const char *name, size_t size, PyType_Slot *slots)
{
    PyType_Spec spec = {
        .name = name,
        .basicsize = (int)size,
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
        .slots = slots,
    };
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}

// Types are made once a process: objects of theirs outlive a module that is imported anew.
static bool make_types(PyObject *module)
{
    static const struct {
        const char *name;
        PyTypeObject *(*make)(PyObject *module);
        PyTypeObject **type;
    } rows[] = {
        {"Runtime", native_runtime_make_type, &native.runtime_type},
        {"Operation", native_operation_make_type, &native.operation_type},
        {"Plan", native_plan_make_type, &native.plan_type},
        {"Call", native_call_make_type, &native.call_type},
        {"Context", native_context_make_type, &native.context_type},
        {"Overlay", native_overlay_make_type, &native.overlay_type},
        {"Result", native_result_make_type, &native.result_type},
        {"Program", native_program_make_type, &native.program_type},
        {"Store", native_store_make_type, &native.store_type},
        {"Tuning", native_tuner_make_type, &native.tuning_type},
        {"TorchKernel", native_torch_kernel_make_type, &native.torch_kernel_type},
        {"TorchLayer", native_torch_layer_make_type, &native.torch_layer_type},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (*rows[i].type == NULL) *rows[i].type = rows[i].make(module);
        if (*rows[i].type == NULL || PyModule_AddObjectRef(module, rows[i].name, (PyObject *)*rows[i].type) != 0)
            return false;
    }
    return true;
}

static PyObject *torch_is_ordinary(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    return PyBool_FromLong(native_torch_is_ordinary());
}

static PyMethodDef functions[] = {
    {"run", (PyCFunction)(void (*)(void))run, METH_FASTCALL | METH_KEYWORDS,
     "run(operation, *arrays, **scalars)\n--\n\n"
     "Runs an operation on arrays: parameters, then results, by position or by name.\n\n"
     "    y = hone.run(\"rms_norm\", x, weight, eps=1e-5)   # x f32 [..., dim], weight f32 [dim] -> y f32 [..., "
     "dim]\n\n"
     "Args:\n"
     "    operation: a name, with a version where one is meant, ``\"rms_norm@v1\"``.\n"
     "    arrays: with the dtypes and shapes of ``hone.registry.signature(operation)``, any strides. Results that are "
     "left\n"
     "        out are made, like the first array; those that are given are written.\n"
     "    scalars: by name; those that are left out have the signature's defaults.\n"
     "    stream: of arrays on a GPU: a stream of torch or CuPy, what has __cuda_stream__, or its number; left out: "
     "their\n"
     "        framework's current one.\n"
     "    axes: of scaled_dot_product_attention: \"bhsd\" for torch's order of axes, \"bshd\" for hone's; tensors of "
     "torch "
     "ask\n"
     "        for it.\n\n"
     "Returns:\n"
     "    The result, or a tuple of them.\n\n"
     "Raises:\n"
     "    InvalidArgumentError: an array is not as the signature asks; the text says which and how.\n"
     "    TypeError: an argument is no array, or no parameter has its name.\n"
     "    NotFoundError: there is no such operation, or no kernel that can run the call."},
    {"bind", (PyCFunction)(void (*)(void))bind, METH_FASTCALL | METH_KEYWORDS,
     "bind(operation, *arrays, **scalars)\n--\n\n"
     "Decides and prepares without running: a plan for arrays of the same dtypes, shapes, strides and alignment.\n\n"
     "    plan = hone.bind(\"rms_norm\", x, weight, y, eps=1e-5)\n"
     "    plan(x, weight, y)\n\n"
     "Takes what :func:`run` takes; ``stream`` is for the plan's calls that name none. A plan that is bound without "
     "results\n"
     "makes them. ``plan.kernel`` names what runs."},
    {"call", (PyCFunction)(void (*)(void))call, METH_FASTCALL | METH_KEYWORDS,
     "call(operation, *arrays, **scalars)\n--\n\n"
     "The call that arguments describe; an array may be a pair (dtype, shape)."},
    {"open_store", native_store_open, METH_VARARGS, "open_store(url, read_only): a store."},
    {"torch_kernel", native_torch_kernel_new, METH_VARARGS,
     "torch_kernel(name, recorded or None, makes_results, torch.Tensor): what torch's dispatcher calls for an "
     "operation."},
    {"torch_is_ordinary", torch_is_ordinary, METH_NOARGS,
     "torch_is_ordinary(): whether nothing in torch sees, records or changes what is called."},
    {"torch_layer", native_torch_layer_new, METH_VARARGS,
     "torch_layer(operation, weights, scalars, eps, eps_if_none, attributes, takes_rows): "
     "what runs the calls of a replaced module."},
    {"lend", native_scripts_lend, METH_VARARGS,
     "lend(prepare, watch, name, worker): this interpreter runs kernels that are functions of Python."},
    {"work", native_scripts_work, METH_VARARGS, "work(fd): the whole of a worker's process."},
    {"signature", native_scripts_signature, METH_O,
     "signature(text): (name, version, normalised text, parameters and results as dicts)."},
    {"compare_agreements", native_compare_agreements, METH_O, "compare_agreements(documents): dicts of what differs."},
    {"use", use, METH_O, "use(runtime or None): the runtime of the module's functions."},
    {"contexts_used", contexts_used, METH_NOARGS, "contexts_used(): from now on calls look for a context."},
    {"version", version, METH_NOARGS, "version(): of the library."},
    {"setup", setup, METH_VARARGS, "setup(errors, context_variable, ...)"},
    {0},
};

// What the module keeps is the process's: the exceptions and the context variable of one interpreter.
static bool is_main_interpreter(void)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) return true;
    PyErr_SetString(PyExc_ImportError, "hone cannot be imported in a subinterpreter: import it in the main one");
    return false;
}

static int make_module(PyObject *module)
{
    return is_main_interpreter() && make_names() && make_types(module) ? 0 : -1;
}

static PyModuleDef_Slot steps[] = {{Py_mod_exec, (void *)make_module}, {0}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,  .m_name = "hone._hone", .m_doc = "The C library hone.",
    .m_methods = functions, .m_slots = steps,
};

PyMODINIT_FUNC PyInit__hone(void);

PyMODINIT_FUNC PyInit__hone(void)
{
    return PyModuleDef_Init(&definition);
}
