// The arithmetic of messages: sums or maxima of products, of plain numbers or of their logarithms.
//
// Plain numbers are quick. They are scaled so that the largest number of a message is 1. What is below 1e-308
// of it is lost, which matters only where the rest is excluded later: then a maximum falls below kSmallest,
// Underflow is thrown, and all is computed again with logarithms. There a maximum of −inf is a Contradiction:
// no assignment is possible.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace crfkit {

struct Underflow {};
struct Contradiction {};

inline constexpr double kSmallest = 1e-60;
inline constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

struct PlainNumbers {
    static constexpr bool kLogarithms = false;
    static constexpr double zero = 0, one = 1;
    static double times(double a, double b) { return a * b; }
    static double over(double a, double b) { return a / b; }  // b > 0
    static double power(double a, double exponent) { return std::pow(a, exponent); }
    static double of_log(double x) { return std::exp(x); }
    static double to_log(double x) { return std::log(x); }
    static double to_plain(double x) { return x; }
    static void check(double largest) {
        if (!(largest >= kSmallest)) throw Underflow{};
    }
};

struct Logarithms {
    static constexpr bool kLogarithms = true;
    static constexpr double zero = kMinusInfinity, one = 0;
    static double times(double a, double b) { return a + b; }
    static double over(double a, double b) { return a - b; }
    static double power(double a, double exponent) { return a == zero ? zero : a * exponent; }
    static double of_log(double x) { return x; }
    static double to_log(double x) { return x; }
    static double to_plain(double x) { return std::exp(x); }
    static void check(double largest) {
        if (largest == zero) throw Contradiction{};
    }
};

template <class Numbers>
struct Sums : Numbers {
    static constexpr bool kMaxima = false;
    static double plus(double a, double b) {
        if constexpr (Numbers::kLogarithms) {
            const double high = std::max(a, b), low = std::min(a, b);
            return low == Numbers::zero ? high : high + std::log1p(std::exp(low - high));
        } else {
            return a + b;
        }
    }
};

template <class Numbers>
struct Maxima : Numbers {
    static constexpr bool kMaxima = true;
    static double plus(double a, double b) { return a > b ? a : b; }
};

// Scales numbers so that the largest is one.
template <class Domain>
void normalise(double* x, std::int64_t n) {
    double largest = x[0];
    for (std::int64_t i = 1; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
    Domain::check(largest);
    if constexpr (Domain::kLogarithms) {
        for (std::int64_t i = 0; i < n; ++i) x[i] -= largest;
    } else {
        const double scale = 1 / largest;
        for (std::int64_t i = 0; i < n; ++i) x[i] *= scale;
    }
}

template <class Domain>
double total(const double* x, std::int64_t n) {
    double sum = x[0];
    for (std::int64_t i = 1; i < n; ++i) sum = Domain::plus(sum, x[i]);
    return sum;
}

}  // namespace crfkit
