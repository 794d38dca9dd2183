// MLIR bytecode, plain and as portable artifacts.
#include "program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hone_view bytes = {(const char *)data, size};
    check_reader(bytes, hone_bytecode_read);
    check_program(bytes);
    return 0;
}
