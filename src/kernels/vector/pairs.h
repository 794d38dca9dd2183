// Pairs of lanes, for the vectors of the including file: separate from its set's header, since only the kernels that
// rotate pairs need it.
#ifndef HONE_KERNELS_VECTOR_PAIRS_H
#define HONE_KERNELS_VECTOR_PAIRS_H

// The set that the file is compiled for: VEC_NAME makes one of these names of hone_set.
#define hone_set_portable 1
#define hone_set_avx2     2
#define hone_set_avx512   3

// vec_unzip: of the lanes of a, followed by those of b, a gets the even ones and b the odd ones. vec_zip: the reverse,
// a lane of a, a lane of b, and so on.
#if VEC_NAME(hone_set) == hone_set_avx512
HONE_INLINE void vec_unzip(vec *a, vec *b)
{
    const __m512i evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const vec even = _mm512_permutex2var_ps(*a, evens, *b);
    *b = _mm512_permutex2var_ps(*a, _mm512_or_epi32(evens, _mm512_set1_epi32(1)), *b);
    *a = even;
}

HONE_INLINE void vec_zip(vec *a, vec *b)
{
    const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const vec low = _mm512_permutex2var_ps(*a, first, *b);
    *b = _mm512_permutex2var_ps(*a, _mm512_add_epi32(first, _mm512_set1_epi32(8)), *b);
    *a = low;
}
#elif VEC_NAME(hone_set) == hone_set_avx2
HONE_INLINE void vec_unzip(vec *a, vec *b)
{
    const __m256d even = _mm256_castps_pd(_mm256_shuffle_ps(*a, *b, 0x88));
    const __m256d odd = _mm256_castps_pd(_mm256_shuffle_ps(*a, *b, 0xdd));
    *a = _mm256_castpd_ps(_mm256_permute4x64_pd(even, 0xd8));
    *b = _mm256_castpd_ps(_mm256_permute4x64_pd(odd, 0xd8));
}

HONE_INLINE void vec_zip(vec *a, vec *b)
{
    const vec low = _mm256_unpacklo_ps(*a, *b), high = _mm256_unpackhi_ps(*a, *b);
    *a = _mm256_permute2f128_ps(low, high, 0x20);
    *b = _mm256_permute2f128_ps(low, high, 0x31);
}
#else
HONE_INLINE void vec_unzip(vec *a, vec *b)
{
    const vec x = *a, y = *b;
    *a = (vec){x[0], x[2], y[0], y[2]};
    *b = (vec){x[1], x[3], y[1], y[3]};
}

HONE_INLINE void vec_zip(vec *a, vec *b)
{
    const vec x = *a, y = *b;
    *a = (vec){x[0], y[0], x[1], y[1]};
    *b = (vec){x[2], y[2], x[3], y[3]};
}
#endif

#endif
