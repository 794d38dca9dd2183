// The interpreter that this process has lent (hone/interpreter.h), for who starts workers.
#ifndef HONE_PLATFORMS_INTERPRETER_H
#define HONE_PLATFORMS_INTERPRETER_H

#include "hone/interpreter.h"

// The program and arguments of a worker with an interpreter, NULL-ended. NULL: none was lent.
const char *const *hone_interpreter_worker(void);
// In a worker, before its first question.
void hone_interpreter_start(void);
// hone_interpreter.watch of what was lent; false: nothing was, or it does not look.
bool hone_interpreter_watch(hone_interpreter_stage stage, char *words, size_t size);

#endif
