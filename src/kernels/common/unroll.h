// Unrolls the loop that follows, whose bounds are constants once its function is inlined: arrays that it indexes are
// then in registers. gcc and clang have different pragmas, and neither unrolls by itself at every size.
#ifndef HONE_KERNELS_COMMON_UNROLL_H
#define HONE_KERNELS_COMMON_UNROLL_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define HONE_UNROLL // with a sanitizer's additions to a loop gcc may ignore the annotation and warn
#elif defined(__clang__)
#    define HONE_UNROLL _Pragma("clang loop unroll(full)")
#else
#    define HONE_UNROLL _Pragma("GCC unroll 32")
#endif

#define HONE_INLINE static inline __attribute__((always_inline))

// For code that a row, a tile or a task runs once: one copy for all variants of the loop before it.
#define HONE_OUTLINE static __attribute__((noinline, unused))

#endif
