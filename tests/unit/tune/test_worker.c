#include "subjects.h"
#include "tune/tuner.h"

int main(void)
{
    return hone_worker_main(3, subjects_register);
}
