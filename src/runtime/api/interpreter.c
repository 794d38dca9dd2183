// The worker of a process that lends an interpreter: what hone-worker is to one without.
#include "hone/interpreter.h"
#include "kernels/kernels.h"
#include "tune/tuner.h"

int hone_interpreter_work(int fd)
{
    return hone_worker_main(fd, hone_kernels_register);
}
