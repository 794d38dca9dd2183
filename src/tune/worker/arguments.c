#include "tune/worker/arguments.h"

#include "base/hash.h"
#include "tune/worker/session.h"

#include <string.h>

// Arguments are const for the kernel, but not for their owner.
static void write(const void *to, const void *from, size_t size)
{
    memcpy((void *)(uintptr_t)to, from, size);
}

// Returns whether it was changed.
static bool restore(const void *now, const void *before, size_t size)
{
    if (memcmp(now, before, size) == 0) return false;
    write(now, before, size);
    return true;
}

static size_t bytes_of_dims(const hone_tensor *tensor)
{
    return (size_t)tensor->ndim * sizeof tensor->shape[0];
}

// memcpy, because the bytes between the fields are compared, too, and an assignment need not copy these.
void hone_arguments_keep(hone_arguments *kept, const hone_runner *runner, const hone_value *values)
{
    for (size_t i = 0; i < runner->session->buffers.count; i++) {
        memcpy(&kept->values[i], &values[i], sizeof values[i]);
        if (values[i].tag != HONE_VALUE_TENSOR) continue;
        const hone_tensor *tensor = values[i].as.tensor;
        memcpy(&kept->tensors[i], tensor, sizeof *tensor);
        if (tensor->shape != NULL) memcpy(kept->shapes[i], tensor->shape, bytes_of_dims(tensor));
        if (tensor->strides != NULL) memcpy(kept->strides[i], tensor->strides, bytes_of_dims(tensor));
    }
    memcpy(&kept->plan, &runner->plan, sizeof kept->plan);
    memcpy(&kept->kernel, &runner->kernel, sizeof kept->kernel);
    memcpy(&kept->config, &runner->config, sizeof kept->config);
    memcpy(&kept->execution, &runner->execution, sizeof kept->execution);
}

static const char *put_back_tensor(const hone_arguments *kept, size_t index)
{
    const hone_tensor *before = &kept->tensors[index];
    const size_t size = bytes_of_dims(before);
    const char *changed = NULL;
    if (restore(kept->values[index].as.tensor, before, sizeof *before)) changed = "the hone_tensor of";
    if (before->shape != NULL && restore(before->shape, kept->shapes[index], size)) changed = "the shape of";
    if (before->strides != NULL && restore(before->strides, kept->strides[index], size)) changed = "the strides of";
    return changed;
}

static const char *put_back_runner(const hone_arguments *kept, hone_runner *runner)
{
    const char *changed = NULL;
    if (restore(&runner->execution, &kept->execution, sizeof kept->execution)) changed = "its hone_execution";
    if (restore(&runner->config, &kept->config, sizeof kept->config)) changed = "its config";
    if (restore(&runner->kernel, &kept->kernel, sizeof kept->kernel)) changed = "its hone_kernel";
    if (restore(&runner->plan, &kept->plan, sizeof kept->plan)) changed = "its hone_plan";
    return changed;
}

const char *hone_arguments_put_back(
    const hone_arguments *kept, hone_runner *runner, const hone_value *values, int *out_index)
{
    const char *changed = put_back_runner(kept, runner);
    *out_index = -1;
    for (size_t i = 0; i < runner->session->buffers.count; i++) {
        const bool is_other = restore(&values[i], &kept->values[i], sizeof values[i]);
        const char *of_tensor = kept->values[i].tag == HONE_VALUE_TENSOR ? put_back_tensor(kept, i) : NULL;
        if (!is_other && of_tensor == NULL) continue;
        changed = is_other ? "the argument" : of_tensor;
        *out_index = (int)i;
    }
    return changed;
}

static uint64_t add_tensor(uint64_t digest, const hone_tensor *tensor)
{
    digest = hone_hash64_add(digest, tensor, sizeof *tensor);
    // A value that cannot be a tensor's rank was written by a kernel, and is in the digest by now.
    if (tensor->ndim < 0 || tensor->ndim > HONE_MAX_RANK) return digest;
    if (tensor->shape != NULL) digest = hone_hash64_add(digest, tensor->shape, bytes_of_dims(tensor));
    return tensor->strides != NULL ? hone_hash64_add(digest, tensor->strides, bytes_of_dims(tensor)) : digest;
}

uint64_t hone_arguments_digest(const hone_runner *runner)
{
    const hone_buffers *buffers = &runner->session->buffers;
    uint64_t digest = hone_hash64(&runner->plan, sizeof runner->plan);
    digest = hone_hash64_add(digest, &runner->kernel, sizeof runner->kernel);
    digest = hone_hash64_add(digest, &runner->config, sizeof runner->config);
    for (size_t set = 0; set < buffers->set_count; set++) {
        digest = hone_hash64_add(digest, buffers->sets[set].values, buffers->count * sizeof(hone_value));
        for (size_t i = 0; i < buffers->count; i++)
            if (buffers->sets[set].fenced[i].block != NULL)
                digest = add_tensor(digest, &buffers->sets[set].fenced[i].placed);
    }
    return digest;
}
