// Stores that go past the caches, for results that are larger than these: memory need not be read before it
// is overwritten, and what the caches hold stays there. Included only by kernels.cpp, like simd.hpp.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "base/simd.hpp"

namespace crfkit::CRFKIT_ISA {

// How many numbers a place lies behind the begin of a line of the cache.
inline std::int64_t phase(const double* place) {
    return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(place) / sizeof(double) % 8);
}

// `place` is aligned.
inline void store_past(double* place, Vector<double> numbers) {
#if defined(CRFKIT_512_BITS)
    _mm512_stream_pd(place, numbers);
#elif defined(__AVX2__)
    _mm256_stream_pd(place, numbers);
#elif defined(__SSE2__)
    _mm_stream_pd(place, numbers);
#else
    store(place, numbers);
#endif
}

// Copies n numbers; both places have the same phase.
inline void stream(const double* from, std::int64_t n, double* to) {
    constexpr std::int64_t width = Lanes<double>::count;
    std::int64_t j = 0;
    for (; j < n && phase(to + j) != 0; ++j) to[j] = from[j];
    for (; j + width <= n; j += width) store_past(to + j, load(from + j));
    for (; j < n; ++j) to[j] = from[j];
}

// To be called before other threads may read what was streamed.
inline void finish_streams() {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

}  // namespace crfkit::CRFKIT_ISA
