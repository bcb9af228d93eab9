#include "segments/word_lattice_evaluator.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/interned_lists.hpp"
#include "base/interruption.hpp"
#include "base/subnormals.hpp"
#include "base/threads.hpp"
#include "data/arc_model.hpp"
#include "training/chain_factors.hpp"

namespace crfkit {
namespace {

constexpr double kLargestTransition = 150;  // nats; beyond it a message may lose what matters
constexpr std::int64_t kArcsOfBlock = 16384;

}  // namespace

void WordScores::set(const double* w, std::vector<double>& scores) const {
    scores.resize(static_cast<std::size_t>(size() + 1));
    for (std::int64_t i = 0; i < size(); ++i) {
        double sum = 0;
        for (std::int64_t k = ptr[i]; k < ptr[i + 1]; ++k) sum += values[k] * w[weights[k]];
        scores[i] = sum;
    }
    scores.back() = 0;
}

void WordScores::add_gradient(const std::vector<double>& residuals, double* gradient) const {
    for (std::int64_t i = 0; i < size(); ++i)
        for (std::int64_t k = ptr[i]; k < ptr[i + 1]; ++k) gradient[weights[k]] += values[k] * residuals[i];
}

WordArcScores::WordArcScores(const WordLattices& data) {
    const ArcModel model(*data.layout);
    DesignFactors features(*data.layout, *data.design, model);
    InternedLists known;  // weights, then the bits of their values
    std::vector<std::int32_t> key;
    Parts parts;
    Pace pace;
    for (std::int64_t n = 0; n < data.n_sequences(); ++n) {
        const std::int64_t first = data.design->sequence_ptr[n];
        features.load(n);
        for (std::int64_t a = first; a < data.design->sequence_ptr[n + 1]; ++a) {
            parts.clear();
            parts.add_factor();
            if (data.arcs.outcomes[a] >= 0) features.add_label(a - first, data.arcs.outcomes[a], parts);
            key.assign(parts.factors.ids.begin(), parts.factors.ids.end());
            for (const double value : parts.values) {
                const auto bits = std::bit_cast<std::uint64_t>(value);
                key.push_back(static_cast<std::int32_t>(bits >> 32));
                key.push_back(static_cast<std::int32_t>(bits));
            }
            pace.work(64 * static_cast<std::int64_t>(key.size()));
            of_arc.push_back(known.add(key));
            if (of_arc.back() < lists.size()) continue;
            for (const std::int64_t id : parts.factors.ids)
                lists.weights.push_back(static_cast<std::int32_t>(id));
            lists.values.insert(lists.values.end(), parts.values.begin(), parts.values.end());
            lists.ptr.push_back(static_cast<std::int64_t>(lists.weights.size()));
        }
    }
}

// Messages of one sequence, by nodes, arcs and boundaries counted in it.
struct WordLatticeEvaluator::Work {
    std::vector<double> ended, begun;   // α_E, α_B
    std::vector<double> arcs;           // v
    std::vector<double> offset, total;  // C, sum of each boundary
    std::vector<double> passing, back;  // P(B), Σ_b T q of the nodes E of a boundary
};

struct WordLatticeEvaluator::Sums {
    double value = 0;
    std::vector<double> arcs, transitions;
};

WordLatticeEvaluator::WordLatticeEvaluator(const WordLattices& data, const WordArcScores& arcs,
                                           const std::vector<double>& weights)
    : data_(data), arcs_(arcs), weights_(weights) {
    Pace pace;
    std::int64_t in_block = 0;
    block_ptr_.push_back(0);
    for (std::int64_t n = 0; n < data.n_sequences(); ++n) {
        const std::size_t n_pairs = pair_.size(), n_arcs = score_.size();
        compile(n);
        pace.work(64 * static_cast<std::int64_t>(pair_.size() - n_pairs));
        in_block += static_cast<std::int64_t>(score_.size() - n_arcs);
        if (in_block < kArcsOfBlock) continue;
        block_ptr_.push_back(n + 1);
        in_block = 0;
    }
    if (block_ptr_.back() < data.n_sequences()) block_ptr_.push_back(data.n_sequences());
}

void WordLatticeEvaluator::compile(std::int64_t n) {
    const WordArcs& arcs = data_.arcs;
    const WordTransitions& transitions = data_.transitions;
    const std::int64_t n_steps = data_.n_steps(n), first = begun_.back();
    std::vector<std::int32_t> begin(
        static_cast<std::size_t>(data_.design->sequence_ptr[n + 1] - data_.design->sequence_ptr[n]));
    std::vector<std::int32_t> from(begin.size());
    std::vector<std::int32_t> ended{transitions.boundary()}, begun;  // labels of the boundary
    std::vector<std::int64_t> by_label;
    for (std::int64_t t = 0; n_steps > 0 && t <= n_steps; ++t) {
        if (t > 0) {
            ended.clear();
            for (const std::int64_t a : data_.entering(n, t - 1)) {
                const std::int64_t i = a - data_.design->sequence_ptr[n];
                if (ended.empty() || ended.back() != arcs.labels[a]) {
                    ended.push_back(arcs.labels[a]);
                    arc_ptr_.push_back(arc_ptr_.back());
                }
                ++arc_ptr_.back();
                score_.push_back(arcs_.of_arc[a]);
                begin_.push_back(begin[i]);
                from_.push_back(from[i]);
            }
        } else {
            arc_ptr_.push_back(arc_ptr_.back());  // START
        }
        begun.clear();
        if (t < n_steps) {
            by_label.assign(data_.leaving(n, t).begin(), data_.leaving(n, t).end());
            std::stable_sort(by_label.begin(), by_label.end(),
                             [&](std::int64_t a, std::int64_t b) { return arcs.labels[a] < arcs.labels[b]; });
            for (const std::int64_t a : by_label) {
                if (begun.empty() || begun.back() != arcs.labels[a]) begun.push_back(arcs.labels[a]);
                const std::int64_t i = a - data_.design->sequence_ptr[n];
                begin[i] = static_cast<std::int32_t>(begun_.back() - first + begun.size() - 1);
                from[i] = static_cast<std::int32_t>(t);
            }
        } else {
            begun.push_back(transitions.boundary());  // END
        }
        for (const std::int32_t b : begun)
            for (const std::int32_t c : ended) {
                const std::int64_t k = transitions.find(c, b);
                pair_.push_back(static_cast<std::int32_t>(k < 0 ? transitions.size() : k));
            }
        ended_.push_back(ended_.back() + static_cast<std::int64_t>(ended.size()));
        begun_.push_back(begun_.back() + static_cast<std::int64_t>(begun.size()));
        pair_ptr_.push_back(static_cast<std::int64_t>(pair_.size()));
    }
    boundary_ptr_.push_back(static_cast<std::int64_t>(ended_.size()) - 1);
}

bool WordLatticeEvaluator::run(std::int64_t n, const double* arc_scores, const double* transitions,
                               Work& work, Sums& sums) const {
    const std::int64_t first = boundary_ptr_[n], last = boundary_ptr_[n + 1];
    if (first == last) return true;
    const std::int64_t e0 = ended_[first], b0 = begun_[first], a0 = arc_ptr_[e0];
    work.ended.resize(static_cast<std::size_t>(ended_[last] - e0));
    work.begun.resize(static_cast<std::size_t>(begun_[last] - b0));
    work.arcs.resize(static_cast<std::size_t>(arc_ptr_[ended_[last]] - a0));
    work.offset.resize(static_cast<std::size_t>(last - first));
    work.total.resize(static_cast<std::size_t>(last - first));
    work.ended[0] = 1;  // START
    for (std::int64_t k = first; k < last; ++k) {
        const std::int64_t e = ended_[k] - e0, n_ended = ended_[k + 1] - ended_[k];
        const std::int64_t b = begun_[k] - b0, n_begun = begun_[k + 1] - begun_[k];
        double highest = 0;
        if (k > first) {
            const std::int64_t begin = arc_ptr_[ended_[k]], end = arc_ptr_[ended_[k + 1]];
            highest = -std::numeric_limits<double>::infinity();
            for (std::int64_t a = begin; a < end; ++a) {
                work.arcs[a - a0] = arc_scores[score_[a]] + work.offset[from_[a]];
                highest = std::max(highest, work.arcs[a - a0]);
            }
            for (std::int64_t j = 0; j < n_ended; ++j) {
                double sum = 0;
                for (std::int64_t a = arc_ptr_[ended_[k] + j]; a < arc_ptr_[ended_[k] + j + 1]; ++a) {
                    double& v = work.arcs[a - a0];
                    v = work.begun[begin_[a]] * std::exp(v - highest);
                    sum += v;
                }
                work.ended[e + j] = sum;
            }
        }
        const std::int32_t* pair = pair_.data() + pair_ptr_[k];
        double total = 0;
        for (std::int64_t i = 0; i < n_begun; ++i, pair += n_ended) {
            double sum = 0;
            for (std::int64_t j = 0; j < n_ended; ++j) sum += work.ended[e + j] * transitions[pair[j]];
            work.begun[b + i] = sum;
            total += sum;
        }
        if (!(total > 0) || !std::isfinite(total)) return false;
        for (std::int64_t i = 0; i < n_begun; ++i) work.begun[b + i] /= total;
        work.total[k - first] = total;
        work.offset[k - first] = highest + std::log(total);
    }
    const double weight = weights_[n];
    sums.value += weight * work.offset.back();
    go_back(n, weight, transitions, work, sums);
    return true;
}

void WordLatticeEvaluator::go_back(std::int64_t n, double prob, const double* transitions, Work& work,
                                   Sums& sums) const {
    const std::int64_t first = boundary_ptr_[n], last = boundary_ptr_[n + 1];
    const std::int64_t e0 = ended_[first], b0 = begun_[first], a0 = arc_ptr_[e0];
    work.passing.assign(work.begun.size(), 0.0);
    work.passing.back() = prob;  // END
    for (std::int64_t k = last; k-- > first;) {
        const std::int64_t e = ended_[k] - e0, n_ended = ended_[k + 1] - ended_[k];
        const std::int64_t b = begun_[k] - b0, n_begun = begun_[k + 1] - begun_[k];
        work.back.assign(static_cast<std::size_t>(n_ended), 0.0);
        const std::int32_t* pair = pair_.data() + pair_ptr_[k];
        for (std::int64_t i = 0; i < n_begun; ++i, pair += n_ended) {
            if (work.passing[b + i] == 0) continue;
            const double q = work.passing[b + i] / (work.begun[b + i] * work.total[k - first]);
            for (std::int64_t j = 0; j < n_ended; ++j) {
                const double back = transitions[pair[j]] * q;
                work.back[j] += back;
                sums.transitions[pair[j]] += work.ended[e + j] * back;
            }
        }
        if (k == first) break;
        for (std::int64_t j = 0; j < n_ended; ++j)
            for (std::int64_t a = arc_ptr_[ended_[k] + j]; a < arc_ptr_[ended_[k] + j + 1]; ++a) {
                const double passing = work.arcs[a - a0] * work.back[j];
                sums.arcs[score_[a]] += passing;
                work.passing[begin_[a]] += passing;
            }
    }
}

// Each block has sums of its own, which are added up in their order: the same bits for any number of threads.
bool WordLatticeEvaluator::evaluate(const std::vector<double>& arc_scores,
                                    const std::vector<double>& transition_scores, double sign, int n_threads,
                                    double& value, std::vector<double>& arc_residuals,
                                    std::vector<double>& transition_residuals) const {
    std::vector<double> transitions(transition_scores.size());
    for (std::size_t i = 0; i < transitions.size(); ++i) {
        if (!(std::abs(transition_scores[i]) <= kLargestTransition)) return false;
        transitions[i] = std::exp(transition_scores[i]);
    }
    const auto n_blocks = static_cast<std::int64_t>(block_ptr_.size()) - 1;
    std::vector<Sums> sums(static_cast<std::size_t>(n_blocks));
    std::vector<std::uint8_t> exact(sums.size(), 1);
    std::vector<Work> work(static_cast<std::size_t>(std::max(n_threads, 1)));
    parallel_for(n_blocks, n_threads, [&](std::int64_t i, int worker) {
        const FlushSubnormals flush;
        check_interruption();
        sums[i].arcs.assign(arc_scores.size(), 0.0);
        sums[i].transitions.assign(transitions.size(), 0.0);
        for (std::int64_t n = block_ptr_[i]; n < block_ptr_[i + 1] && exact[i]; ++n)
            exact[i] = run(n, arc_scores.data(), transitions.data(), work[worker], sums[i]);
    });
    for (std::int64_t i = 0; i < n_blocks; ++i) {
        if (!exact[i]) return false;
        value += sign * sums[i].value;
        for (std::size_t k = 0; k < arc_residuals.size(); ++k) arc_residuals[k] += sign * sums[i].arcs[k];
        for (std::size_t k = 0; k < transition_residuals.size(); ++k)
            transition_residuals[k] += sign * sums[i].transitions[k];
    }
    return std::isfinite(value);
}

}  // namespace crfkit
