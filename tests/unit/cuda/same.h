// What hone declares beside what a header of NVIDIA's declares.
#ifndef HONE_TESTS_CUDA_SAME_H
#define HONE_TESTS_CUDA_SAME_H

#define FIELD(type, field, of, name) assert_int_equal(offsetof(type, field), offsetof(of, name))

// The same arguments are good for both: as many, addresses and numbers in the same places, numbers of the same width.
#define SAME(ours, theirs, ...)                                                                                        \
    do {                                                                                                               \
        (void)sizeof(ours(__VA_ARGS__));                                                                               \
        (void)sizeof(theirs(__VA_ARGS__));                                                                             \
    } while (false)

#endif
