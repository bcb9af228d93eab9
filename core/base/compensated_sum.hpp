// A sum of doubles that keeps the digits that plain addition drops.
#pragma once

#include <cmath>

namespace crfkit {

// Neumaier's sum: maxima of states and arcs may be large and cancel.
struct Total {
    double sum = 0, lost = 0;
    void add(double x) {
        const double next = sum + x;
        lost += std::abs(sum) >= std::abs(x) ? (sum - next) + x : (x - next) + sum;
        sum = next;
    }
    double value() const { return std::isfinite(sum) ? sum + lost : sum; }
};

}  // namespace crfkit
