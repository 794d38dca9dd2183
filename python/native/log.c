// What hone has to say, for Python's logging. It comes from any thread, under locks of hone's, with or without the
// interpreter's: so it is kept, and told by the main thread when that next runs Python.
#include "native.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct message {
    struct message *before; // the one that came before it
    int level;
    char text[];
} message;

static _Atomic(message *) newest;

static message *in_order(message *last)
{
    message *first = NULL;
    while (last != NULL) {
        message *before = last->before;
        last->before = first;
        first = last;
        last = before;
    }
    return first;
}

static void tell(const message *m)
{
    PyObject *made = PyObject_CallFunction(native.log, "iN", m->level, native_text(m->text));
    if (made == NULL) PyErr_WriteUnraisable(native.log); // there is no caller whom it could reach
    Py_XDECREF(made);
}

static int tell_all(void *none)
{
    (void)none;
    message *m = in_order(atomic_exchange(&newest, NULL));
    while (m != NULL) {
        message *next = m->before;
        tell(m);
        free(m);
        m = next;
    }
    return 0;
}

// A call that waits for its first run is told of while it waits, by who holds none of hone's locks then.
static void tell_wait(const char *text)
{
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject *made = PyObject_CallFunction(native.log, "iN", LOG_WAIT, native_text(text));
    if (made == NULL) PyErr_Clear();
    Py_XDECREF(made);
    PyGILState_Release(lock);
}

void native_log(void *ctx, int level, const char *text)
{
    (void)ctx;
    if (level > LOG_WARNING && strncmp(text, "first run of ", strlen("first run of ")) == 0) {
        tell_wait(text);
        return;
    }
    if (level > LOG_WARNING && getenv("HONE_LOG") == NULL) return; // asked for because of these words alone
    const size_t size = strlen(text) + 1;
    message *m = malloc(sizeof *m + size); // not Python's: that asks for the interpreter's lock
    if (m == NULL) return;
    m->level = level;
    memcpy(m->text, text, size);
    m->before = atomic_load(&newest);
    while (!atomic_compare_exchange_weak(&newest, &m->before, m)) {
    }
    (void)Py_AddPendingCall(tell_all, NULL); // where its list is full, a later one tells this too
}
