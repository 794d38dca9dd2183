// A worker that knows the misdeeds.
#include "misdeeds.h"
#include "tune/tuner.h"

int main(void)
{
    return hone_worker_main(3, misdeeds_register_all);
}
