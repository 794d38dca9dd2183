// Blobs of jax.export.
#include "program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hone_view bytes = {(const char *)data, size};
    bool cut;
    hone_view module = hone_jax_export_module(bytes, &cut);
    check_view(bytes, module);
    if (module.size > 0) check_reader(module, hone_bytecode_read);
    check_program(bytes);
    return 0;
}
