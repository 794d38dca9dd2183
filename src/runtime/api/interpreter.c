// The worker of a process that lends an interpreter: what hone-worker is to one without.
#include "hone/interpreter.h"
#include "kernels/kernels.h"
#include "platforms/interpreter.h"
#include "tune/tuner.h"

// In the confined process: a driver that what is imported opens must not have been open before.
static hone_status set_up(hone_registry *registry, hone_error *err)
{
    hone_status status = hone_kernels_register(registry, err);
    if (status == HONE_OK) hone_interpreter_start();
    return status;
}

int hone_interpreter_work(int fd)
{
    return hone_worker_main(fd, set_up);
}
