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

void native_log(void *ctx, int level, const char *text)
{
    (void)ctx;
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
