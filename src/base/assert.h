// What a function relies on and does not check: "the lock is held", "sorted", "aligned", "index < count". A broken one
// is a defect of hone, never the caller's or the world's: those get a status.
//
// In builds without NDEBUG (dev, clang, asan, tsan, fuzz) a broken assertion prints itself and aborts. In release
// builds the condition is compiled, so that it cannot rot, and never evaluated.
#ifndef HONE_BASE_ASSERT_H
#define HONE_BASE_ASSERT_H

#ifdef NDEBUG
#    define hone_assert(condition) ((void)sizeof((condition) ? 1 : 0))
#else
#    include <assert.h>
#    define hone_assert(condition) assert(condition)
#endif

#endif
