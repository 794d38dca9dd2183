// What a program is once it was read.
#ifndef HONE_OFFLINE_PROGRAM_H
#define HONE_OFFLINE_PROGRAM_H

#include "offline/forms/forms.h"
#include "offline/match.h"
#include "offline/offline.h"

struct hone_program {
    hone_arena arena;
    const char *name;
    const hone_form *form;
    const char *note;
    int64_t step_bytes; // as in find.h
    hone_matched *items;
    size_t count, capacity;
};

#endif
