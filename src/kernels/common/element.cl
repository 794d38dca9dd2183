// Storage type of tensor elements, and their conversion to and from float. This text precedes the source of a kernel.
// All tensors have the type of x or a. half and bfloat16 need no extension, because they are only loaded and stored.
#if defined(hone_x_f32) || defined(hone_a_f32)
typedef float element;
float widen(const __global element *from)
{
    return *from;
}
void narrow(float value, __global element *to)
{
    *to = value;
}
#elif defined(hone_x_f16) || defined(hone_a_f16)
typedef half element;
float widen(const __global element *from)
{
    return vload_half(0, from);
}
void narrow(float value, __global element *to)
{
    vstore_half_rte(value, 0, to);
}
#else
typedef ushort element;
float widen(const __global element *from)
{
    return as_float((uint)*from << 16);
}
void narrow(float value, __global element *to)
{
    const uint bits = as_uint(value);
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    *to = is_nan ? (ushort)(bits >> 16 | 0x40u) : (ushort)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
#endif
