// The interpreter that this process has lent (hone/interpreter.h), for code that starts workers.
#ifndef HONE_PLATFORMS_INTERPRETER_H
#define HONE_PLATFORMS_INTERPRETER_H

#include "hone/interpreter.h"

// The program and arguments of a worker with an interpreter, NULL-ended. NULL if none was lent.
const char *const *hone_interpreter_worker(void);
// Called in a worker before its first request.
void hone_interpreter_start(void);
// hone_interpreter.watch of the lent interpreter; false if none was lent, or it does not watch.
bool hone_interpreter_watch(hone_interpreter_stage stage, char *words, size_t size);

#endif
