#include "training/average_gradient.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/interruption.hpp"
#include "base/threads.hpp"

namespace crfkit {
namespace {

constexpr double kFirstEstimate = 1;       // of L_i, before any is known
constexpr double kShrink = 0.9;            // of L_i before a line search: it may be too large by now
constexpr double kSmallSlope = 1e-8;       // |gradient|² below which a line search tells nothing
constexpr double kLongestStreak = 10;      // pauses grow to 2^10 visits
constexpr double kSmallestFactor = 1e-9;   // P of a group: below, all weights are settled and P begins at 1
constexpr double kLeastShrinkage = 1e-12;  // what a step leaves of a weight at the least: P is never 0
constexpr int kMostDoublings = 100;

}  // namespace

NumberTree::NumberTree(std::int64_t n) : n_(n), first_(1) {
    while (first_ < n) first_ *= 2;
    sums_.assign(static_cast<std::size_t>(2 * first_), 0.0);
    largest_ = sums_;
}

void NumberTree::set(std::int64_t i, double number) {
    std::int64_t at = first_ + i;
    sums_[at] = largest_[at] = number;
    for (at /= 2; at > 0; at /= 2) {
        sums_[at] = sums_[2 * at] + sums_[2 * at + 1];
        largest_[at] = std::max(largest_[2 * at], largest_[2 * at + 1]);
    }
}

std::int64_t NumberTree::draw(double uniform) const {
    double rest = uniform * sum();
    std::int64_t at = 1;
    while (at < first_) {
        at *= 2;
        if (rest < sums_[at] || sums_[at + 1] <= 0) continue;
        rest -= sums_[at];
        ++at;
    }
    return std::min(at - first_, n_ - 1);
}

std::vector<std::int64_t> residual_places(const SequenceSource& source, int n_threads) {
    const std::int64_t n = source.n_sequences(), n_tasks = std::max(n_threads, 1);
    std::vector<std::int64_t> places(static_cast<std::size_t>(n + 1), 0);
    parallel_for(n_tasks, n_threads, [&](std::int64_t task, int) {
        const auto sequence = source.open();
        for (std::int64_t i = n * task / n_tasks; i < n * (task + 1) / n_tasks; ++i) {
            check_interruption();
            sequence->load(i);
            places[i + 1] = sequence->n_residuals();
        }
    });
    for (std::int64_t i = 0; i < n; ++i) places[i + 1] += places[i];
    return places;
}

AverageGradient::AverageGradient(const SequenceSource& source, std::span<const double> l2,
                                 std::span<const std::int64_t> places, double* w, double* slopes,
                                 double* residuals, std::span<Visit> visits)
    : source_(source),
      groups_(source.pack_strengths(l2)),
      places_(places),
      w_(w),
      s_(slopes),
      v_(source.n_slots()),
      slopes_(source.n_slots()),
      residuals_(residuals),
      visits_(visits),
      tree_(source.n_sequences()),
      sequence_(source.open()),
      sums_(groups_.l2.size()) {
    stamps_.assign(source.n_slots(), 0.0);
    for (std::int64_t i = 0; i < source.n_sequences(); ++i) {
        tree_.set(i, visits[i].lipschitz);
        n_visited_ += visits[i].lipschitz > 0;
    }
}

std::int64_t AverageGradient::pass(std::span<const std::int32_t> order, std::span<const double> uniforms) {
    if (uniforms.size() != 2 * order.size())
        throw std::invalid_argument("expected two uniform numbers for each step");
    const std::int64_t n = source_.n_sequences();
    source_.pack(w_, 0, v_.data());
    source_.pack(s_, 0, slopes_.data());
    const auto give_back = [&] {
        fold();
        source_.unpack(v_.data(), w_);
        source_.unpack(slopes_.data(), s_);
    };
    for (std::size_t k = 0; k < order.size(); ++k) try {
            check_interruption();
            std::int64_t i = order[k];
            if (i < -1 || i >= n) throw std::invalid_argument("order names a sequence that there is not");
            if (i < 0 && (uniforms[2 * k] < 0.5 || n_visited_ == 0))
                i = std::min(n - 1, static_cast<std::int64_t>(uniforms[2 * k + 1] * static_cast<double>(n)));
            else if (i < 0)
                i = tree_.draw(uniforms[2 * k + 1]);
            visit(i);
            step();
        } catch (...) {  // interrupted: the steps so far count
            give_back();
            throw;
        }
    give_back();
    return n_losses_;
}

// The weights of the sequence, brought up to date.
void AverageGradient::read() {
    const auto& runs = sequence_->runs();
    if (sums_.size() == 1) {
        const LateWeights late{v_.data(), slopes_.data(), stamps_.data(), sums_[0].P, sums_[0].R};
        step_kernels().read_late(runs.data(), static_cast<std::int64_t>(runs.size()), late, weights_.data());
        return;
    }
    double* to = weights_.data();
    for (const Run run : runs)
        for (std::int64_t d = run.begin; d < run.end; ++d) {
            const Sums& now = sums_[groups_.of(d)];
            v_[d] -= slopes_[d] * (now.R - stamps_[d]);
            stamps_[d] = now.R;
            *to++ = now.P * v_[d];
        }
}

// Brings the residuals of sequence i, and with them the slopes, to the weights of now.
void AverageGradient::visit(std::int64_t i) {
    sequence_->load(i);
    const std::int64_t n_weights = sequence_->n_weights(), n_residuals = sequence_->n_residuals();
    for (Buffer<double>* numbers : {&weights_, &gradient_, &trial_}) numbers->resize(n_weights);
    for (Buffer<double>* numbers : {&fresh_, &scratch_}) numbers->resize(n_residuals);
    read();
    const double loss = sequence_->differentiate(weights_.data(), fresh_.data());
    ++n_losses_;
    double* kept = residuals_ + places_[i];
    for (std::int64_t k = 0; k < n_residuals; ++k) {
        scratch_[k] = fresh_[k] - kept[k];
        kept[k] = fresh_[k];
    }
    sequence_->gradient(scratch_.data(), gradient_.data());
    const auto& runs = sequence_->runs();
    step_kernels().add(runs.data(), static_cast<std::int64_t>(runs.size()), gradient_.data(), 1.0,
                       slopes_.data());
    if (visits_[i].lipschitz == 0) {
        visits_[i].lipschitz =
            n_visited_ > 0 ? tree_.sum() / static_cast<double>(n_visited_) : kFirstEstimate;
        ++n_visited_;
    }
    visits_[i].loss = loss;
    search(i, loss);
    tree_.set(i, visits_[i].lipschitz);
}

// Doubles L_i until loss_i(w − g / L_i) ≤ loss_i(w) − |g|² / (2 L_i). After a success the next ones are left
// out, the more the longer it has held.
void AverageGradient::search(std::int64_t i, double loss) {
    Visit& visit = visits_[i];
    if (visit.pause > 0) {
        --visit.pause;
        return;
    }
    const std::int64_t n = sequence_->n_weights();
    sequence_->gradient(fresh_.data(), gradient_.data());
    double slope = 0;
    for (std::int64_t k = 0; k < n; ++k) slope += gradient_[k] * gradient_[k];
    if (!(slope > kSmallSlope)) return;
    visit.lipschitz *= kShrink;
    for (int doublings = 0; doublings < kMostDoublings; ++doublings) {
        for (std::int64_t k = 0; k < n; ++k) trial_[k] = weights_[k] - gradient_[k] / visit.lipschitz;
        ++n_losses_;
        const double there = sequence_->differentiate(trial_.data(), scratch_.data());
        if (there <= loss - 0.5 * slope / visit.lipschitz) {
            visit.streak = doublings == 0 ? std::min(visit.streak + 1, kLongestStreak) : 0;
            visit.pause = std::exp2(visit.streak) - 1;
            return;
        }
        visit.lipschitz *= 2;
    }
}

void AverageGradient::step() {
    const auto n = static_cast<double>(source_.n_sequences()), m = static_cast<double>(n_visited_);
    const double strongest = groups_.l2.back() / n;
    const double rate = 0.5 / (tree_.largest() + strongest) + 0.5 / (tree_.sum() / m + strongest);
    bool small = false;
    for (std::size_t g = 0; g < sums_.size(); ++g) {
        sums_[g].P *= std::max(1 - rate * groups_.l2[g] / n, kLeastShrinkage);
        sums_[g].R += rate / m / sums_[g].P;
        small = small || sums_[g].P < kSmallestFactor;
    }
    if (small) fold();
}

void AverageGradient::fold() {
    source_.each_run([&](Run run) {
        for (std::int64_t d = run.begin; d < run.end; ++d) {
            const Sums& now = sums_[groups_.of(d)];
            const double stamp = stamps_[sums_.size() == 1 ? run.begin : d];
            v_[d] = now.P * (v_[d] - slopes_[d] * (now.R - stamp));
        }
    });
    std::fill(stamps_.begin(), stamps_.end(), 0.0);
    std::fill(sums_.begin(), sums_.end(), Sums{});
}

}  // namespace crfkit
