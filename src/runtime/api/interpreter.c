// The worker of a process that provides an interpreter; it replaces hone-worker there.
#include "hone/interpreter.h"
#include "kernels/kernels.h"
#include "platforms/interpreter.h"
#include "tune/tuner.h"

// Runs in the confined process: a driver that an imported module opens must not have been open before.
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
