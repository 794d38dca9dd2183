// What the fakes write down: a line an event, in the file that FAKE_CUDA_LOG or FAKE_OPENCL_LOG names.
#ifndef FAKE_LOG_H
#define FAKE_LOG_H

void fake_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
