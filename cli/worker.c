// hone-worker: the process in which kernels are tried, so that one that crashes, hangs or writes out of bounds harms nobody.
// The tuner starts it and talks to it over file descriptor 3.
#include "kernels/kernels.h"
#include "tune/tuner.h"

int main(void)
{
    return hone_worker_main(3, hone_kernels_register);
}
