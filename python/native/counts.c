// What was hit, and whether ranks choose alike.
#include "native.h"

#include <stdlib.h>
#include <string.h>

// A text that grows, made without the interpreter's lock.
typedef struct growing {
    char *bytes;
    size_t size, capacity;
    bool failed;
} growing;

static void grow(void *ctx, const char *text, size_t size)
{
    growing *all = ctx;
    if (all->failed) return;
    if (all->size + size > all->capacity) {
        const size_t capacity = 2 * (all->size + size);
        char *bytes = realloc(all->bytes, capacity);
        all->failed = bytes == NULL;
        if (all->failed) return;
        all->bytes = bytes;
        all->capacity = capacity;
    }
    memcpy(all->bytes + all->size, text, size);
    all->size += size;
}

static PyObject *text_of(growing *all)
{
    PyObject *text =
        all->failed ? PyErr_NoMemory() : PyUnicode_DecodeUTF8(all->bytes, (Py_ssize_t)all->size, "replace");
    free(all->bytes);
    return text;
}

PyObject *native_runtime_stats(PyObject *object, PyObject *format)
{
    const long wanted = PyLong_AsLong(format);
    growing all = {.bytes = NULL};
    hone_status status;
    hone_error err;
    if (wanted == -1 && PyErr_Occurred()) return NULL;
    Py_BEGIN_ALLOW_THREADS status =
        hone_stats_print(((native_runtime *)object)->rt, NULL, 0, (hone_stats_format)wanted, grow, &all, &err);
    Py_END_ALLOW_THREADS if (status == HONE_OK) return text_of(&all);
    free(all.bytes);
    return native_raise(&err);
}

// Called without the interpreter's lock.
static bool append_finding(void *ctx, const hone_stats_finding *found)
{
    PyObject **list = ctx;
    PyGILState_STATE state = PyGILState_Ensure();
    native_append(
        list, Py_BuildValue(
                  "{s:N,s:z,s:z,s:z,s:z,s:z,s:z,s:s,s:K,s:z,s:z}", "is_stored", PyBool_FromLong(found->is_stored),
                  "device", found->key.device, "algorithm", found->key.algorithm, "version", found->key.version, "key",
                  found->key.key, "call", found->call, "kernel", found->kernel, "link", hone_source_name(found->source),
                  "calls", (unsigned long long)found->calls, "nearest", found->nearest, "differs", found->differs));
    const bool goes_on = *list != NULL;
    PyGILState_Release(state);
    return goes_on;
}

PyObject *native_runtime_compare_stats(PyObject *object, PyObject *none)
{
    (void)none;
    PyObject *list = PyList_New(0);
    hone_status status;
    hone_error err;
    if (list == NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS status =
        hone_stats_compare(((native_runtime *)object)->rt, NULL, 0, append_finding, &list, &err);
    Py_END_ALLOW_THREADS if (list == NULL || status == HONE_OK) return list;
    Py_DECREF(list);
    return native_raise(&err);
}

// Ranks ----------------------------------------------------------------------------------------------------------------

// The texts of a list, borrowed of it; NULL with an exception. PyMem_Free.
static const char **texts_of(PyObject *list, bool may_lack)
{
    const Py_ssize_t count = PyList_Check(list) ? PyList_Size(list) : -1;
    if (count < 0) {
        PyErr_SetString(PyExc_TypeError, "expected a list of call texts");
        return NULL;
    }
    const char **texts = PyMem_Calloc((size_t)count + 1, sizeof *texts);
    if (texts == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyList_GetItem(list, i);
        if (may_lack && item == Py_None) continue;
        texts[i] = native_utf8(item);
        if (texts[i] != NULL) continue;
        PyMem_Free((void *)texts);
        return NULL;
    }
    return texts;
}

// agree(calls or None): (document, digest)
PyObject *native_runtime_agree(PyObject *object, PyObject *calls)
{
    const char **texts = calls != Py_None ? texts_of(calls, false) : NULL;
    const size_t count = texts != NULL ? (size_t)PyList_Size(calls) : 0;
    hone_context *context = NULL;
    PyObject *entered = NULL;
    char digest[HONE_DIGEST_SIZE];
    growing all = {.bytes = NULL};
    hone_status status;
    hone_error err;
    if (calls != Py_None && texts == NULL) return NULL;
    if (!native_context_current(&context, &entered)) {
        PyMem_Free((void *)texts);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS hone_context *previous = hone_context_enter(context);
    status = hone_agree(((native_runtime *)object)->rt, texts, count, grow, &all, digest, &err);
    hone_context_enter(previous);
    Py_END_ALLOW_THREADS Py_XDECREF(entered);
    PyMem_Free((void *)texts);
    if (status == HONE_OK) return Py_BuildValue("(Ns)", text_of(&all), digest);
    free(all.bytes);
    return native_raise(&err);
}

static bool append_disagreement(void *ctx, const hone_disagreement *found)
{
    PyObject **list = ctx;
    native_append(
        list, Py_BuildValue(
                  "{s:n,s:n,s:s,s:s,s:s,s:s,s:s,s:s}", "rank", (Py_ssize_t)found->rank, "other",
                  (Py_ssize_t)found->other, "call", found->call, "algorithm", found->algorithm, "version",
                  found->version, "key", found->key, "field", found->field, "words", found->words));
    return *list != NULL;
}

PyObject *native_compare_agreements(PyObject *module, PyObject *documents)
{
    (void)module;
    const char **texts = texts_of(documents, true);
    PyObject *list = PyList_New(0);
    hone_error err;
    hone_status status = HONE_OK;
    if (texts != NULL && list != NULL)
        status = hone_agree_compare(texts, (size_t)PyList_Size(documents), append_disagreement, &list, &err);
    const bool ok = texts != NULL && list != NULL && status == HONE_OK;
    PyMem_Free((void *)texts);
    if (ok) return list;
    Py_XDECREF(list);
    return status != HONE_OK ? native_raise(&err) : NULL;
}
