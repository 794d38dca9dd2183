// The conditions under which two CPUs can share a decision: the same vendor and microarchitecture, the same instruction
// sets among those that kernels use, the same caches, the same number of usable threads. Clock, memory size, system and
// library versions may differ: they change times, but seldom the order of kernels, and a fingerprint with them would
// invalidate every decision at an update.
#include "platforms/native/native.h"

#include "registry/names.h"

#include <inttypes.h>
#include <string.h>

static void append_part(hone_buffer *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        if (byte <= ' ' || byte == 0x7f || strchr(",+=%|", byte) != NULL)
            hone_buffer_format(out, "%%%02X", byte);
        else
            hone_buffer_char(out, *c);
    }
}

static void append_known(hone_buffer *out, const char *text)
{
    append_part(out, text[0] != '\0' ? text : "unknown");
}

void hone_native_fingerprint(const hone_os_cpu *cpu, hone_buffer *out)
{
    char features[512];
    hone_cpu_features_text(cpu->features, "+", features, sizeof features);
    hone_buffer_text(out, "cpu|");
    append_known(out, cpu->vendor);
    hone_buffer_char(out, ',');
    append_known(out, cpu->microarchitecture);
    hone_buffer_char(out, ',');
    hone_buffer_text(out, features[0] != '\0' ? features : "baseline");
    hone_buffer_format(
        out, ",l1=%" PRId64 ",l2=%" PRId64 ",l3=%" PRId64 ",threads=%" PRId32, cpu->l1_bytes, cpu->l2_bytes,
        cpu->l3_bytes, cpu->threads);
}
