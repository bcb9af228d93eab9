#include "training/stochastic.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>

#include "base/buffer.hpp"
#include "base/threads.hpp"

namespace crfkit {
namespace {

constexpr double kSmallestFactor = 1e-3;  // P of a group: below, all weights are settled and P begins at 1
constexpr std::size_t kShortTables = 1 << 16;  // entries that tables may have, however few weights there are
constexpr std::int64_t kMostAtOnce = 64;       // sequences of a step in memory at a time

double soft(double x, double a) { return x > a ? x - a : x < -a ? x + a : 0.0; }

// One sequence of a step.
struct Slot {
    std::unique_ptr<SequenceLoss> sequence;
    Buffer<double> weights, gradient, residuals;
    double loss = 0;

    template <class Rule>
    void differentiate(std::int64_t n, const Rule& rule) {
        sequence->load(n);
        weights.resize(sequence->n_weights());
        gradient.resize(sequence->n_weights());
        rule.read(sequence->runs(), weights.data());
        residuals.resize(sequence->n_residuals());
        loss = sequence->differentiate(weights.data(), residuals.data());
        sequence->gradient(residuals.data(), gradient.data());
    }
};

// Takes all steps by a rule: `read` gives the weights before the step, `move` adds the gradient of one
// sequence of the step, `end_step` closes it; with several sequences a step, no weight moves before.
template <class Rule>
double take_steps(const SequenceSource& source, const Steps& steps, Rule& rule) {
    steps.check(source);
    const auto n = static_cast<std::int64_t>(steps.order.size());
    const std::int64_t n_slots = std::min({steps.batch, n, kMostAtOnce});
    std::vector<Slot> slots(static_cast<std::size_t>(n_slots));
    for (Slot& slot : slots) slot.sequence = source.open();
    double loss = 0;
    for (std::int64_t k = 0; k < steps.n_steps(); ++k) {
        const std::int64_t first = k * steps.batch, size = std::min(steps.batch, n - first);
        rule.begin_step(k);
        for (std::int64_t at = first; at < first + size; at += n_slots) {
            const std::int64_t here = std::min(n_slots, first + size - at);
            parallel_for(here, steps.n_threads,
                         [&](std::int64_t i, int) { slots[i].differentiate(steps.order[at + i], rule); });
            for (std::int64_t i = 0; i < here; ++i) {
                rule.move(slots[i].sequence->runs(), slots[i].weights.data(), slots[i].gradient.data());
                loss += slots[i].loss;
            }
        }
        rule.end_step(size);
    }
    return loss;
}

// The same, and then gives the weights back, also where the steps are interrupted: those taken so far count.
template <class Rule, class GiveBack>
double take_steps_and(const SequenceSource& source, const Steps& steps, Rule& rule,
                      const GiveBack& give_back) {
    double loss;
    try {
        loss = take_steps(source, steps, rule);
    } catch (...) {
        give_back();
        throw;
    }
    give_back();
    return loss;
}

}  // namespace

void Steps::check(const SequenceSource& source) const {
    if (batch < 1) throw std::invalid_argument("batch must be at least 1");
    for (const std::int32_t n : order)
        if (n < 0 || n >= source.n_sequences())
            throw std::invalid_argument("order names sequence " + std::to_string(n) + ", expected 0 to " +
                                        std::to_string(source.n_sequences() - 1));
}

PenaltyGroups::PenaltyGroups(std::span<const double> strengths) {
    l2.assign(strengths.begin(), strengths.end());
    std::sort(l2.begin(), l2.end());
    l2.erase(std::unique(l2.begin(), l2.end()), l2.end());
    if (l2.size() > kMost)
        throw std::invalid_argument("l2 has " + std::to_string(l2.size()) +
                                    " different strengths, expected at most " + std::to_string(kMost) +
                                    " for stochastic steps");
    if (l2.size() == 1) return;
    groups_.reserve(strengths.size());
    for (const double strength : strengths)
        groups_.push_back(
            static_cast<std::uint8_t>(std::lower_bound(l2.begin(), l2.end(), strength) - l2.begin()));
}

void StepGradient::reset(std::int64_t n_slots) {
    sum_.assign(n_slots, 0.0);
    met_.assign(static_cast<std::size_t>(n_slots), 0);
}

void StepGradient::add(const std::vector<Run>& runs, const double* gradient) {
    for (const Run run : runs) {
        if (met_[run.begin]) continue;
        met_[run.begin] = 1;
        runs_.push_back(run);
        size_ += run.end - run.begin;
    }
    step_kernels().add(runs.data(), static_cast<std::int64_t>(runs.size()), gradient, 1.0, sum_.data());
}

void StepGradient::gather() {
    gathered_.resize(size_);
    step_kernels().read(runs_.data(), static_cast<std::int64_t>(runs_.size()), sum_.data(), 1.0,
                        gathered_.data());
}

void StepGradient::forget() {
    for (const Run run : runs_) {
        met_[run.begin] = 0;
        std::fill(sum_.data() + run.begin, sum_.data() + run.end, 0.0);
    }
    runs_.clear();
    size_ = 0;
}

GradientSteps::GradientSteps(const SequenceSource& source, const Penalty& penalty)
    : source_(source),
      l1_(source.pack_strengths(penalty.l1)),
      groups_(source.pack_strengths(penalty.l2)),
      has_l1_(std::any_of(l1_.begin(), l1_.end(), [](double strength) { return strength > 0; })) {}

double GradientSteps::pass(double* w, double* total, const Steps& steps, std::span<const double> rates) {
    steps.check(source_);
    if (static_cast<std::int64_t>(rates.size()) != steps.n_steps())
        throw std::invalid_argument("there are " + std::to_string(rates.size()) + " rates, expected " +
                                    std::to_string(steps.n_steps()) + ": one for each step");
    averaging_ = total != nullptr;
    lazy_ = has_l1_ || averaging_;
    rates_ = rates;
    v_.resize(source_.n_slots());
    source_.pack(w, 0, v_.data());
    if (averaging_) {
        total_.resize(source_.n_slots());
        source_.pack(total, 0, total_.data());
    }
    alone_ = steps.batch == 1;
    if (!alone_) step_.reset(source_.n_slots());
    stamps_.assign(lazy_ ? static_cast<std::size_t>(source_.n_slots()) : 0, 0);
    sums_.assign(groups_.l2.size(), {Sums{}});
    return take_steps_and(source_, steps, *this, [&] {
        fold();
        source_.unpack(v_.data(), w);
        if (averaging_) source_.unpack(total_.data(), total);
    });
}

void GradientSteps::read(const std::vector<Run>& runs, double* to) const {
    if (!has_l1_ && is_even()) {
        step_kernels().read(runs.data(), static_cast<std::int64_t>(runs.size()), v_.data(), sums_[0].back().P,
                            to);
        return;
    }
    for (const Run run : runs)
        for (std::int64_t d = run.begin; d < run.end; ++d) {
            const std::vector<Sums>& sums = sums_[groups_.of(d)];
            const double shrink = has_l1_ ? l1_of(d) * (sums.back().Q - sums[stamps_[run.begin]].Q) : 0.0;
            *to++ = soft(v_[d], shrink) * sums.back().P;
        }
}

void GradientSteps::begin_step(std::int64_t k) { rate_ = rates_[k]; }

void GradientSteps::move(const std::vector<Run>& runs, const double*, const double* gradient) {
    if (alone_)
        apply(runs, gradient);
    else
        step_.add(runs, gradient);
}

// The step along the gradient, without its penalty.
void GradientSteps::apply(const std::vector<Run>& runs, const double* gradient) {
    if (lazy_)
        for (const Run run : runs) settle(run);
    if (sums_.size() == 1) {
        step_kernels().add(runs.data(), static_cast<std::int64_t>(runs.size()), gradient,
                           -rate_ / sums_[0].back().P, v_.data());
        return;
    }
    for (const Run run : runs)
        for (std::int64_t d = run.begin; d < run.end; ++d)
            v_[d] -= rate_ / sums_[groups_.of(d)].back().P * *gradient++;
}

void GradientSteps::end_step(std::int64_t n_sequences) {
    if (!alone_)
        step_.release([&](const auto& runs, const double* gradient, std::int64_t) { apply(runs, gradient); });
    const double c = rate_ * static_cast<double>(n_sequences) / static_cast<double>(source_.n_sequences());
    bool small = false;
    for (std::size_t g = 0; g < sums_.size(); ++g) {
        const Sums before = sums_[g].back();
        Sums after;
        after.P = before.P / (1 + c * groups_.l2[g]);
        after.Q = before.Q + c / before.P;
        after.A = before.A + after.P;
        after.B = before.B + after.P * after.Q;
        small = small || after.P < kSmallestFactor;
        if (lazy_)
            sums_[g].push_back(after);
        else
            sums_[g].back() = after;
    }
    if (small || tables_are_full()) fold();
}

bool GradientSteps::tables_are_full() const {
    const std::size_t n_weights = static_cast<std::size_t>(source_.n_slots());
    return sums_.size() * sums_[0].size() > std::max(n_weights, kShortTables);
}

// Makes up for the steps since a run was last touched.
void GradientSteps::settle(Run run) {
    const std::size_t from = stamps_[run.begin], now = sums_[0].size() - 1;
    if (from == now) return;
    stamps_[run.begin] = static_cast<std::uint32_t>(now);
    if (is_even() && !(averaging_ && has_l1_)) {
        const Sums &then = sums_[0][from], &here = sums_[0][now];
        step_kernels().settle(v_.data() + run.begin, averaging_ ? total_.data() + run.begin : nullptr,
                              here.A - then.A, l1_[0] * (here.Q - then.Q), run.end - run.begin);
        return;
    }
    for (std::int64_t d = run.begin; d < run.end; ++d) {
        const std::vector<Sums>& sums = sums_[groups_.of(d)];
        if (averaging_) total_[d] += sum_of_iterates(d, sums, from);
        v_[d] = soft(v_[d], l1_of(d) * (sums[now].Q - sums[from].Q));
    }
}

// Σ_m P_m soft(v, l1 (Q_m − Q_from)) over m = from + 1..now; from some m on the terms may all be 0.
double GradientSteps::sum_of_iterates(std::int64_t d, const std::vector<Sums>& sums, std::size_t from) const {
    const double v = std::abs(v_[d]), l1 = l1_of(d);
    if (v == 0) return 0;
    std::size_t last = sums.size() - 1;
    if (l1 * (sums[last].Q - sums[from].Q) >= v) {
        const auto remains = [&](const Sums& at) { return l1 * (at.Q - sums[from].Q) < v; };
        const auto first = sums.begin() + static_cast<std::ptrdiff_t>(from);
        last = static_cast<std::size_t>(std::partition_point(first, sums.end(), remains) - sums.begin()) - 1;
    }
    const double size =
        (v + l1 * sums[from].Q) * (sums[last].A - sums[from].A) - l1 * (sums[last].B - sums[from].B);
    return v_[d] > 0 ? size : -size;
}

// Settles all weights, and begins the tables anew.
void GradientSteps::fold() {
    if (lazy_) source_.each_run([&](Run run) { settle(run); });
    for (std::int64_t d = 0; d < source_.n_slots(); ++d) v_[d] *= sums_[groups_.of(d)].back().P;
    std::fill(stamps_.begin(), stamps_.end(), 0);
    for (auto& sums : sums_) sums.assign(1, Sums{});
}

AdaptiveSteps::AdaptiveSteps(const SequenceSource& source, const Penalty& penalty, double rate, double passes)
    : source_(source),
      l1_(source.pack_strengths(penalty.l1)),
      l2_(source.pack_strengths(penalty.l2)),
      z_(source.n_slots()),
      root_(source.n_slots()),
      weights_{z_.data(),      root_.data(),   l1_.data(), l2_.data(),
               l1_.size() > 1, l2_.size() > 1, rate,       passes} {}

double AdaptiveSteps::pass(double* w, double* z, double* root, const Steps& steps) {
    source_.pack(z, 0, z_.data());
    source_.pack(root, 1, root_.data());
    alone_ = steps.batch == 1;
    if (!alone_) step_.reset(source_.n_slots());
    return take_steps_and(source_, steps, *this, [&] {
        source_.unpack(z_.data(), z);
        source_.unpack(root_.data(), root);
        Buffer<double> slots(source_.n_slots());
        read({{0, source_.n_slots()}}, slots.data());
        source_.unpack(slots.data(), w);
    });
}

void AdaptiveSteps::read(const std::vector<Run>& runs, double* to) const {
    step_kernels().read_adaptive(runs.data(), static_cast<std::int64_t>(runs.size()), weights_, to);
}

void AdaptiveSteps::move(const std::vector<Run>& runs, const double* weights, const double* gradient) {
    if (alone_)
        step_kernels().move_adaptive(runs.data(), static_cast<std::int64_t>(runs.size()), weights_, weights,
                                     gradient);
    else
        step_.add(runs, gradient);
}

void AdaptiveSteps::end_step(std::int64_t n_sequences) {
    if (!alone_)
        step_.release([&](const auto& runs, const double* gradient, std::int64_t size) {
            before_.resize(size);
            read(runs, before_.data());
            step_kernels().move_adaptive(runs.data(), static_cast<std::int64_t>(runs.size()), weights_,
                                         before_.data(), gradient);
        });
    weights_.passes += static_cast<double>(n_sequences) / static_cast<double>(source_.n_sequences());
}

}  // namespace crfkit
