static inline int64_t end_of_block(int64_t from, int64_t n)
{
    return n - from < block ? n : from + block;
}
