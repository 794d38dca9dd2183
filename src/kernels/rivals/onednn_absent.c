// Stands in for oneDNN where its headers were not there when hone was built.
#include "base/error.h"
#include "kernels/rivals/rivals.h"

static bool supports(const hone_rival *rival, const hone_matmul *product, hone_error *why)
{
    (void)rival;
    (void)product;
    hone_fail(
        why, HONE_UNAVAILABLE, "rivals.onednn",
        "hone was built without oneDNN: install libdnnl-dev (Debian) and build again");
    return false;
}

static hone_status create(
    const hone_rival *rival, const hone_matmul *product, int32_t threads, void **out, hone_error *err)
{
    (void)threads, (void)out;
    supports(rival, product, err);
    return HONE_UNAVAILABLE;
}

static hone_status run(void *product, const void *a, const void *b, void *c, int32_t threads)
{
    (void)product, (void)a, (void)b, (void)c, (void)threads;
    return HONE_UNSUPPORTED;
}

static void destroy(void *product)
{
    (void)product;
}

const hone_rival hone_rival_onednn = {"onednn", supports, create, run, destroy, NULL, NULL};
