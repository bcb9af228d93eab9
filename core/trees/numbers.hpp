// Numbers that elimination on trees runs over. All values are ≥ 0, and there is no subtraction of values.
#pragma once

#include <cmath>

#include "base/exact_sum.hpp"
#include "base/wide.hpp"

namespace crfkit {

// A number part · exp(log) whose logarithm has no bounds and is never rounded: for scores so far apart, or so
// large, that their differences overflow or lose digits which decide. The part is what sums add.
struct Far {
    Wide part;
    ExactSum log;

    friend Far operator*(const Far& a, const Far& b) { return {a.part * b.part, a.log + b.log}; }
    friend Far operator/(const Far& a, const Far& b) { return {a.part / b.part, a.log - b.log}; }
    friend Far operator+(const Far& a, const Far& b);
};

// A value and, beside it, a number g that follows its logarithm through sums, products and quotients:
//   g(a b) = g(a) + g(b),  g(a / b) = g(a) − g(b),  g(a + b) = p g(a) + q g(b) + noise,
//   p = a / (a + b), q = b / (a + b)
// Without noise g is the derivative of log value in some direction. With noise = −p log p − q log q it is
// log value − E[score]: the entropy of the choice among the products that the value sums over, 0 for each of
// these. Neither ever holds a number of the size of the scores.
template <class Value, bool kEntropy>
struct Graded {
    Value value{};
    double g = 0;
};

inline bool is_zero(double x) { return x == 0; }
inline bool is_zero(Wide x) { return x.mantissa == 0; }
inline bool is_zero(const Far& x) { return is_zero(x.part); }
template <class Value, bool kEntropy>
bool is_zero(const Graded<Value, kEntropy>& x) {
    return is_zero(x.value);
}

// Below this a double may have lost digits, or the next product of two may.
inline constexpr double kFaded = 1e-290;
inline bool is_faded(double x) { return !(x >= kFaded); }
inline bool is_faded(Wide) { return false; }
inline bool is_faded(const Far&) { return false; }
template <class Value, bool kEntropy>
bool is_faded(const Graded<Value, kEntropy>& x) {
    return is_faded(x.value);
}

inline bool is_finite(double x) { return std::isfinite(x); }
inline bool is_finite(Wide) { return true; }
inline bool is_finite(const Far&) { return true; }
template <class Value, bool kEntropy>
bool is_finite(const Graded<Value, kEntropy>& x) {
    return is_finite(x.value);
}

inline double to_double(double x) { return x; }
inline double to_double(Wide x) {
    if (x.exponent < -2 || x.mantissa == 0) return 0.0;
    if (!std::isfinite(x.mantissa)) return x.mantissa;
    if (x.exponent > 2) return HUGE_VAL;
    return std::ldexp(x.mantissa, static_cast<int>(512 * x.exponent));
}

// x ← x · factor, a factor whose logarithm does not move.
inline void scale(double& x, double factor) { x *= factor; }
inline void scale(Wide& x, double factor) { x = Wide::normal(x.mantissa * factor, x.exponent); }
inline void scale(Far& x, double factor) { scale(x.part, factor); }
template <class Value, bool kEntropy>
void scale(Graded<Value, kEntropy>& x, double factor) {
    scale(x.value, factor);
}

inline Wide widened(double x) { return Wide::normal(x, 0); }
inline Wide widened(Wide x) { return x; }

template <class Value, bool kEntropy>
Graded<Value, kEntropy> operator*(const Graded<Value, kEntropy>& a, const Graded<Value, kEntropy>& b) {
    return {a.value * b.value, a.g + b.g};
}

template <class Value, bool kEntropy>
Graded<Value, kEntropy> operator/(const Graded<Value, kEntropy>& a, const Graded<Value, kEntropy>& b) {
    return {a.value / b.value, a.g - b.g};
}

template <class Value, bool kEntropy>
Graded<Value, kEntropy> operator+(const Graded<Value, kEntropy>& a, const Graded<Value, kEntropy>& b) {
    if (is_zero(b)) return a;
    if (is_zero(a)) return b;
    const Value sum = a.value + b.value;
    const double p = to_double(a.value / sum), q = to_double(b.value / sum);
    double g = p * a.g + q * b.g;
    if constexpr (kEntropy) g -= (p > 0 ? p * std::log(p) : 0.0) + (q > 0 ? q * std::log(q) : 0.0);
    return {sum, g};
}

// exp(score) as a number whose logarithm moves by g; score −inf gives 0.
template <class Number>
struct FromScore;

template <>
struct FromScore<double> {
    static double make(double score, double) { return std::exp(score); }
};

template <>
struct FromScore<Wide> {
    static Wide make(double score, double) { return Wide::exp(score); }
};

template <>
struct FromScore<Far> {
    static Far make(double score, double) {
        if (score == -HUGE_VAL) return {};
        return {{1.0, 0}, ExactSum(score)};
    }
};

inline double to_double(const Far& x) { return to_double(x.part * FromScore<Wide>::make(x.log.value(), 0)); }

inline Far operator+(const Far& a, const Far& b) {
    if (is_zero(b)) return a;
    if (is_zero(a)) return b;
    const double apart = (b.log - a.log).value();
    if (apart == 0) return {a.part + b.part, a.log};
    constexpr double kLost = 100;  // nats below which a term does not reach the last digit of the other
    const double ratio = apart + log_of(b.part / a.part);
    if (ratio < -kLost) return a;
    if (ratio > kLost) return b;
    return {a.part + b.part * FromScore<Wide>::make(apart, 0), a.log};
}

template <class Value, bool kEntropy>
struct FromScore<Graded<Value, kEntropy>> {
    static Graded<Value, kEntropy> make(double score, double g) {
        return {FromScore<Value>::make(score, 0), g};
    }
};

}  // namespace crfkit
