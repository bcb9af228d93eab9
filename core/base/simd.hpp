// Short vectors of the instruction set at hand, through the vector extensions of GCC and Clang.
//
// Included only by kernels.cpp, inside one translation unit per instruction set: everything lives in the
// namespace of that instruction set, and nothing of the standard library is instantiated.
#pragma once

#include <cstdint>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

// Before a loop over an array of vectors: without its loop the array needs no memory.
#if defined(__clang__)
#define CRFKIT_UNROLL _Pragma("unroll")
#else
#define CRFKIT_UNROLL _Pragma("GCC unroll 16")
#endif

namespace crfkit::CRFKIT_ISA {

// CRFKIT_NARROW: vectors of half the width that the instruction set has.
#if defined(__AVX512F__) && !defined(CRFKIT_NARROW)
#define CRFKIT_512_BITS
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <class Real>
struct Lanes;

template <>
struct Lanes<float> {
    using Vector = float __attribute__((vector_size(kVectorBytes)));
    using Ints = std::int32_t __attribute__((vector_size(kVectorBytes)));
    static constexpr int count = kVectorBytes / 4;
};

template <>
struct Lanes<double> {
    using Vector = double __attribute__((vector_size(kVectorBytes)));
    using Ints = std::int64_t __attribute__((vector_size(kVectorBytes)));
    static constexpr int count = kVectorBytes / 8;
};

template <class Real>
using Vector = typename Lanes<Real>::Vector;

// All message rows are padded to whole vectors and aligned to 64 bytes.
template <class Real>
inline Vector<Real> load(const Real* p) {
    return *reinterpret_cast<const Vector<Real>*>(p);
}

template <class Real>
inline void store(Real* p, Vector<Real> v) {
    *reinterpret_cast<Vector<Real>*>(p) = v;
}

// Written as a subtraction, since x − 0 is x for every x and costs nothing; 0 + x is not: it turns −0 into 0.
template <class Real>
inline Vector<Real> broadcast(Real x) {
    return x - Vector<Real>{};
}

template <class V>
inline V larger(V a, V b) {
    return a > b ? a : b;
}

// Tree reductions: halves are combined until one number is left, so the order of the additions is fixed by
// the width.
template <class V, class Combine>
inline auto reduce(V v, Combine combine) {
    constexpr int n = sizeof(v) / sizeof(v[0]);
    if constexpr (n == 16)
        return reduce(combine(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7),
                              __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15)),
                      combine);
    else if constexpr (n == 8)
        return reduce(
            combine(__builtin_shufflevector(v, v, 0, 1, 2, 3), __builtin_shufflevector(v, v, 4, 5, 6, 7)),
            combine);
    else if constexpr (n == 4)
        return reduce(combine(__builtin_shufflevector(v, v, 0, 1), __builtin_shufflevector(v, v, 2, 3)),
                      combine);
    else
        return combine(v[0], v[1]);
}

template <class Real>
inline Real sum(Vector<Real> v) {
    return reduce(v, [](auto a, auto b) { return a + b; });
}

template <class Real>
inline Real maximum(Vector<Real> v) {
    return reduce(v, [](auto a, auto b) { return a > b ? a : b; });
}

// exp(x) for x ≤ 0 (−inf included), within 2 units in the last place; 0 where the result would be subnormal.
// x = n·ln 2 + r, |r| ≤ ½ ln 2; exp(x) = 2ⁿ · p(r), p the Taylor polynomial of exp (truncation below half a
// unit).
inline Vector<float> exp_nonpositive(Vector<float> x) {
    using V = Vector<float>;
    using I = Lanes<float>::Ints;
    const V floor = broadcast(-87.33654f);
    const V magic = broadcast(0x1.8p23f);
    const auto tiny = x < floor;
    x = larger(x, floor);
    const V z = x * 1.44269504f + magic;  // its low bits hold round(x / ln 2)
    const V n = z - magic;
    V r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    V p = broadcast(1.0f / 5040.0f);
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    const I exponent = (reinterpret_cast<I>(z) - reinterpret_cast<I>(magic)) << 23;
    const V result = reinterpret_cast<V>(reinterpret_cast<I>(p) + exponent);
    return tiny ? V{} : result;
}

#if defined(CRFKIT_512_BITS)
// The same with x = n·(ln 2)/16 + r, |r| ≤ (ln 2)/32: exp(x) = 2^(n div 16) · 2^((n mod 16)/16) · p(r). The
// table of the second factor fills two registers; p is the Taylor polynomial of degree 7, economised to
// degree 6 (Chebyshev).
inline Vector<double> exp_nonpositive(Vector<double> x) {
    using V = Vector<double>;
    using I = Lanes<double>::Ints;
    constexpr V low = {1.0,
                       1.0442737824274138,
                       1.0905077326652577,
                       1.1387886347566916,
                       1.189207115002721,
                       1.241857812073484,
                       1.2968395546510096,
                       1.3542555469368927},
                high = {1.4142135623730951, 1.4768261459394993, 1.5422108254079407, 1.6104903319492543,
                        1.681792830507429,  1.7562521603732995, 1.8340080864093424, 1.9152065613971474};
    const V floor = broadcast(-708.3964);
    const V magic = broadcast(0x1.8p52);
    const auto tiny = x < floor;
    x = larger(x, floor);
    const V z = x * (16 * 1.4426950408889634) + magic;  // its low bits hold n = round(16 x / ln 2)
    const V n = z - magic;
    V r = x - n * (6.93147180369123816490e-01 / 16);
    r = r - n * (1.90821492927058770002e-10 / 16);
    V p = broadcast(1.0 / 720.0);
    p = p * r + 0.008333496247359863;
    p = p * r + 1.0 / 24.0;
    p = p * r + 0.16666666662844765;
    p = p * r + 0.5;
    p = p * r + 0x1.000000000000ap+0;
    p = p * r;  // p(r) − 1
    const I bits = reinterpret_cast<I>(z);
    const V root = _mm512_permutex2var_pd(low, reinterpret_cast<__m512i>(bits), high);  // by n mod 16
    const I exponent = (bits & ~std::int64_t(15)) << 48;
    const V result = reinterpret_cast<V>(reinterpret_cast<I>(root * p + root) + exponent);
    return tiny ? V{} : result;
}
#else
inline Vector<double> exp_nonpositive(Vector<double> x) {
    using V = Vector<double>;
    using I = Lanes<double>::Ints;
    const V floor = broadcast(-708.3964);
    const V magic = broadcast(0x1.8p52);
    const auto tiny = x < floor;
    x = larger(x, floor);
    const V z = x * 1.4426950408889634 + magic;
    const V n = z - magic;
    V r = x - n * 6.93147180369123816490e-01;
    r = r - n * 1.90821492927058770002e-10;
    V p = broadcast(1.0 / 6227020800.0);
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    const I exponent = (reinterpret_cast<I>(z) - reinterpret_cast<I>(magic)) << 52;
    const V result = reinterpret_cast<V>(reinterpret_cast<I>(p) + exponent);
    return tiny ? V{} : result;
}
#endif

}  // namespace crfkit::CRFKIT_ISA
