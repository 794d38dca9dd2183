// A loader and driver of OpenCL without a device: memory is the host's, kernels are C functions of the name of their
// entry, and each launch is written down with its arguments. What a real one cannot be asked for, an environment
// variable asks for:
//   FAKE_OPENCL_DEVICES   how many devices (default 1)
//   FAKE_OPENCL_PLATFORMS  2: a second driver behind it, with as many devices of its own
//   FAKE_OPENCL_RESERVES   bytes of address space that the second driver takes when it is asked for its devices
//   FAKE_OPENCL_MEMORY    bytes of a device's memory (default 1 GiB)
//   FAKE_OPENCL_VERSION   what a device says of itself (default "OpenCL 3.0 fake")
//   FAKE_OPENCL_FAULT     "launch=-5": what a function answers in place of its work; functions: platforms, devices, context,
//                         queue, buffer, write, build, binary, kernel, launch, finish, event
//   FAKE_OPENCL_LOG       a file that gets a line a launch, and a line a build
// Built with FAKE_BROKEN it lacks a function of every loader.
#ifndef FAKE_OPENCL_H
#define FAKE_OPENCL_H

// The one in CL/cl.h is the real thing; tests must not need it.
#include "platforms/opencl/icd.h"

enum { FAKE_MAX_ARGUMENTS = 64, FAKE_NAME_SIZE = 64 };

typedef enum fake_space { FAKE_GLOBAL, FAKE_LOCAL, FAKE_CONSTANT, FAKE_PRIVATE } fake_space;

typedef struct fake_argument {
    fake_space space;
    size_t size; // that the kernel takes
    unsigned char bytes[8];
    opencl_memory *memory;
    size_t local_bytes;
} fake_argument;

#endif
