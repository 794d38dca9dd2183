// Replaces oneDNN's files if its headers were not found when hone was built.
#include "base/error.h"
#include "kernels/rivals/rivals.h"

hone_status hone_onednn_is_absent(hone_error *err)
{
    return hone_fail(
        err, HONE_UNAVAILABLE, "rivals.onednn",
        "hone was built without oneDNN: install libdnnl-dev (Debian) and build again");
}

void hone_onednn_release(const hone_kernel *kernel, void *state)
{
    (void)kernel;
    (void)state; // no plan has any
}

static bool supports(const hone_rival *rival, const hone_matmul *product, hone_error *why)
{
    (void)rival;
    (void)product;
    hone_onednn_is_absent(why);
    return false;
}

static hone_status create(
    const hone_rival *rival, const hone_matmul *product, int32_t threads, void **out, hone_error *err)
{
    (void)rival, (void)product, (void)threads, (void)out;
    return hone_onednn_is_absent(err);
}

static hone_status run(void *product, const hone_matmul *of, int32_t threads)
{
    (void)product, (void)of, (void)threads;
    return HONE_UNSUPPORTED;
}

static void destroy(void *product)
{
    (void)product;
}

const hone_rival hone_rival_onednn = {"onednn", supports, create, run, destroy, NULL, NULL, false, true};
