// Unrolls the loop that follows, whose bounds are constants once its function is inlined: arrays indexed by it then
// live in registers. gcc and clang spell it differently, and neither does it by itself at every size.
#ifndef HONE_KERNELS_COMMON_UNROLL_H
#define HONE_KERNELS_COMMON_UNROLL_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define HONE_UNROLL // what a sanitizer adds to a loop can make gcc ignore the annotation, and say so
#elif defined(__clang__)
#    define HONE_UNROLL _Pragma("clang loop unroll(full)")
#else
#    define HONE_UNROLL _Pragma("GCC unroll 32")
#endif

#define HONE_INLINE static inline __attribute__((always_inline))

// Of what a row, a tile or a task does once: one copy for all variants of the loop before it.
#define HONE_OUTLINE static __attribute__((noinline, unused))

#endif
