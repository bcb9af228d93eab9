// Numbers ≥ 0 of any size, as exact as doubles.
#pragma once

#include <cmath>

namespace crfkit {

// A number of any size: value = mantissa · 2^(512 · exponent), the mantissa 0 or in [2^−256, 2^256). As exact
// as a double. The exponent is a whole number, and no integer: one score of −1e300 among others must not
// overflow it. Beyond 2^53 it is rounded, as sums of such scores are.
struct Wide {
    double mantissa = 0;
    double exponent = 0;

    static constexpr double kUp = 0x1p512, kDown = 0x1p-512;

    static Wide normal(double mantissa, double exponent) {
        if (mantissa == 0) return {};
        if (!std::isfinite(mantissa)) return {mantissa, 0};  // of scores that are no numbers
        for (; mantissa >= 0x1p256; ++exponent) mantissa *= kDown;
        for (; mantissa < 0x1p-256; --exponent) mantissa *= kUp;
        return {mantissa, exponent};
    }
    // exp(score); 0 for −inf.
    static Wide exp(double score) {
        if (score == -HUGE_VAL) return {};
        constexpr double kHigh = 354.891356446692, kLow = 1.1873519686893054e-14;  // 512 log 2
        const double exponent = std::nearbyint(score / kHigh);
        const double rest = std::fma(-exponent, kHigh, score) - exponent * kLow;
        if (!(std::abs(rest) < kHigh)) return {1.0, exponent};  // less than the last digit of such a score
        return normal(std::exp(rest), exponent);
    }
    friend Wide operator*(Wide a, Wide b) { return normal(a.mantissa * b.mantissa, a.exponent + b.exponent); }
    friend Wide operator/(Wide a, Wide b) { return normal(a.mantissa / b.mantissa, a.exponent - b.exponent); }
    friend Wide operator+(Wide a, Wide b) {
        if (b.mantissa == 0) return a;
        if (a.mantissa == 0) return b;
        if (a.exponent < b.exponent) return b + a;
        const double apart = a.exponent - b.exponent;
        if (apart > 1) return a;  // b is below a · 2^−512
        return normal(a.mantissa + (apart > 0 ? b.mantissa * kDown : b.mantissa), a.exponent);
    }
};

// log x; −inf of 0.
inline double log_of(Wide x) {
    constexpr double kLog2 = 0.693147180559945309417232121458;
    return std::log(x.mantissa) + 512.0 * x.exponent * kLog2;
}

}  // namespace crfkit
