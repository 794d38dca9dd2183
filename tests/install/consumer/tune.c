// A program of somebody else that tunes one call: libhone finds its worker and its plugins.  tune CALL KERNEL
#include <hone/hone.h>

#include <stdio.h>

int main(int count, char **words)
{
    hone_runtime *rt = NULL;
    hone_result *result = NULL;
    hone_error err;
    hone_tune_options options = {.struct_size = sizeof options, .seconds = 1, .kernel = words[count - 1]};
    hone_status status = hone_runtime_open(NULL, &rt, &err);
    if (status == HONE_OK) status = hone_tune_text(rt, words[1], &options, &result, &err);
    puts(status == HONE_OK ? hone_result_decision(result, 0)->kernel : err.message);
    hone_result_release(&result);
    hone_runtime_close(&rt);
    return status != HONE_OK;
}
