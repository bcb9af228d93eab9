#include "chain/batch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "base/threads.hpp"
#include "chain/log_chain.hpp"
#include "chain/spans.hpp"
#include "chain/viterbi.hpp"
#include "chain/workspace.hpp"
#include "paths/spans.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kChainsPerTask = 4;  // fixed, so that sums never depend on the number of threads

// One table of arcs, padded, as scores and in exp space.
template <class Real>
class BatchArcs {
  public:
    void set(const Kernels<Real>& kernels, const Real* from, std::int32_t n_labels, std::int32_t stride) {
        const std::int64_t L = n_labels, S = stride;
        scores.assign(L * S, WeightTables<Real>::kNever);
        Real low = std::numeric_limits<Real>::infinity(), maximum = -low;
        bool missing = false;
        for (std::int64_t a = 0; a < L; ++a)
            for (std::int64_t b = 0; b < L; ++b) {
                const Real score = scores[a * S + b] = from[a * L + b];
                missing = missing || score == WeightTables<Real>::kNever;
                if (score == WeightTables<Real>::kNever) continue;
                low = std::min(low, score);
                maximum = std::max(maximum, score);
            }
        if (low > maximum) low = maximum = 0;  // no transition exists
        safe = double(maximum) - double(low) <= WeightTables<Real>::kSafeSpread;
        weight_.resize(L * S);
        transposed_.assign(L * S, 0);
        kernels.exp_shifted(scores.data(), maximum, weight_.data(), L * S);
        for (std::int64_t a = 0; a < L; ++a)
            for (std::int64_t b = 0; b < L; ++b) transposed_[b * S + a] = weight_[a * S + b];
        table = {n_labels, stride, static_cast<double>(maximum), weight_.data(), transposed_.data(), nullptr,
                 nullptr,  missing};
    }
    Buffer<Real> scores;   // [L, S]
    ArcTable<Real> table;  // exp(score − maximum)
    bool safe = false;     // whether scaled messages may be tried

  private:
    Buffer<Real> weight_, transposed_;
};

// The workspace of one thread.
template <class Real>
struct ChainWorkspace {
    Workspace<Real> work;
    BatchArcs<Real> arcs;
    Buffer<Real> products;            // [S, S]
    std::vector<double> states, own;  // without padding, in double: for log space
    std::vector<double> probs, pairs;
};

template <class Real>
class Batch {
  public:
    Batch(const ChainBatch<Real>& batch, const Real* weights, double* log_partition, Real* states, Real* arcs)
        : b(batch),
          weights_(weights),
          log_partition_(log_partition),
          states_(states),
          arcs_(arcs),
          kernels(kernels_for<Real>(batch.n_labels)),
          stride(stride_for(kernels, batch.n_labels)) {
        if (!b.own_arcs) shared_.set(kernels, b.arcs, b.n_labels, stride);
    }

    void run(int n_threads) {
        const std::int64_t n_tasks = (b.n_chains + kChainsPerTask - 1) / kChainsPerTask;
        std::vector<ChainWorkspace<Real>> workspaces(static_cast<std::size_t>(std::max(1, n_threads)));
        const std::size_t size = static_cast<std::size_t>(b.n_labels) * b.n_labels;
        std::vector<double> sums(arcs_ && !b.own_arcs ? size * n_tasks : 0);
        parallel_for(n_tasks, n_threads, [&](std::int64_t task, int worker) {
            const FlushSubnormals flush;
            std::vector<double> own(b.own_arcs && arcs_ ? size : 0);
            for (std::int64_t n = task * kChainsPerTask;
                 n < std::min(b.n_chains, (task + 1) * kChainsPerTask); ++n) {
                double* into = !arcs_ ? nullptr : b.own_arcs ? own.data() : sums.data() + task * size;
                if (b.own_arcs) std::fill(own.begin(), own.end(), 0.0);
                log_partition_[n] = run_chain(n, workspaces[worker], into);
                if (b.own_arcs && arcs_)
                    for (std::size_t i = 0; i < size; ++i) arcs_[n * size + i] = static_cast<Real>(own[i]);
            }
        });
        if (!arcs_ || b.own_arcs) return;
        for (std::size_t i = 0; i < size; ++i) {
            double total = 0;
            for (std::int64_t task = 0; task < n_tasks; ++task) total += sums[task * size + i];
            arcs_[i] = static_cast<Real>(total);
        }
    }

    // The scores of a chain with start and end folded in, padded.
    void fill(std::int64_t n, Real* out) const {
        const std::int64_t L = b.n_labels, T = b.lengths[n];
        for (std::int64_t t = 0; t < T; ++t) {
            const Real* row = b.states + (n * b.n_positions + t) * L;
            std::copy_n(row, L, out + t * stride);
            std::fill(out + t * stride + L, out + (t + 1) * stride, WeightTables<Real>::kNever);
        }
        for (std::int64_t k = 0; k < L; ++k) {
            if (b.start) out[k] += b.start[k];
            if (b.end) out[(T - 1) * stride + k] += b.end[k];
        }
    }

    const BatchArcs<Real>& arcs_of(std::int64_t n, ChainWorkspace<Real>& workspace) const {
        if (!b.own_arcs) return shared_;
        const std::int64_t L = b.n_labels;
        workspace.arcs.set(kernels, b.arcs + n * L * L, b.n_labels, stride);
        return workspace.arcs;
    }

    // function(spans) for the spans of a chain, unless it is empty or nothing is possible: of the scaled
    // chain where that is exact, else by the path engine.
    template <class Function>
    void with_spans(std::int64_t n, ChainWorkspace<Real>& workspace, const SpanLabels& labels,
                    const Function& function) const {
        const std::int64_t T = b.lengths[n];
        if (T == 0) return;
        const BatchArcs<Real>& arcs = arcs_of(n, workspace);
        double found = 0;
        if (sum_product(n, arcs, workspace, found)) {
            if (!std::isfinite(found)) return;
            const Messages<Real> messages = workspace.work.messages(workspace.work.probs.data(), 1);
            ChainSpans spans(messages, arcs.table, nullptr, T, labels);
            function(spans);
            return;
        }
        const ChainGraph graph(plain(n, arcs, workspace));
        PathEngine engine;
        if (!std::isfinite(engine.marginals(graph, true))) return;
        PathSpans spans(graph, engine, labels);
        function(spans);
    }

    const ChainBatch<Real>& b;

  private:
    // Scaled forward–backward: messages, probabilities and log Z. False where that may lose something: where
    // transitions are far apart, or some are missing and it cannot be shown that nothing was lost.
    bool sum_product(std::int64_t n, const BatchArcs<Real>& arcs, ChainWorkspace<Real>& workspace,
                     double& found) const {
        const std::int64_t T = b.lengths[n];
        workspace.work.reserve(T, stride, false);
        fill(n, workspace.work.states.data());
        if (!arcs.safe) return false;
        const Messages<Real> messages = workspace.work.messages(workspace.work.probs.data(), 1);
        found = kernels.sum_product(arcs.table, nullptr, T, messages);
        if (!arcs.table.some_missing ||
            (std::isfinite(found) && messages_are_exact(messages, T, b.n_labels, stride)))
            return true;
        fill(n, workspace.work.states.data());
        return false;
    }

    // The scores that `fill` has put into the workspace, in double and without padding.
    ChainView plain(std::int64_t n, const BatchArcs<Real>& arcs, ChainWorkspace<Real>& workspace) const {
        const std::int64_t L = b.n_labels, T = b.lengths[n];
        workspace.states.resize(T * L);
        workspace.own.resize(L * L);
        for (std::int64_t i = 0; i < T * L; ++i)
            workspace.states[i] = workspace.work.states[i / L * stride + i % L];
        for (std::int64_t i = 0; i < L * L; ++i) workspace.own[i] = arcs.scores[i / L * stride + i % L];
        return {T, b.n_labels, workspace.states.data(), workspace.own.data(), false};
    }

    double run_chain(std::int64_t n, ChainWorkspace<Real>& workspace, double* into) {
        const std::int64_t L = b.n_labels, T = b.lengths[n];
        if (states_) std::fill_n(states_ + n * b.n_positions * L, b.n_positions * L, Real(0));
        if (T == 0) return 0;
        const BatchArcs<Real>& arcs = arcs_of(n, workspace);
        double found = 0;
        if (!sum_product(n, arcs, workspace, found)) return in_log_space(n, arcs, workspace, into);
        if (!std::isfinite(found) || !states_) return found;
        for (std::int64_t t = 0; t < T; ++t)
            std::copy_n(workspace.work.probs.data() + t * stride, L, states_ + (n * b.n_positions + t) * L);
        if (into) add_arcs(n, arcs, workspace, into);
        return found;
    }

    // Σ_t forward_{t−1}(a) W(a, b) pushed_t(b), in doubles after every 256 positions.
    void add_arcs(std::int64_t n, const BatchArcs<Real>& arcs, ChainWorkspace<Real>& workspace,
                  double* into) const {
        const std::int64_t L = b.n_labels, T = b.lengths[n];
        const double weight = weights_ ? weights_[n] : 1;
        for (std::int64_t t = 1; t < T; t += 256) {
            workspace.products.assign(static_cast<std::int64_t>(stride) * stride, 0);
            kernels.add_products(
                workspace.work.forward.data() + (t - 1) * stride, workspace.work.pushed.data() + t * stride,
                std::min<std::int64_t>(256, T - t), b.n_labels, stride, workspace.products.data());
            for (std::int64_t a = 0; a < L; ++a)
                for (std::int64_t k = 0; k < L; ++k)
                    into[a * L + k] +=
                        weight * workspace.products[a * stride + k] * arcs.table.weight[a * stride + k];
        }
    }

    // The same in double and in log space, where scaled messages could lose something.
    double in_log_space(std::int64_t n, const BatchArcs<Real>& arcs, ChainWorkspace<Real>& workspace,
                        double* into) const {
        const std::int64_t L = b.n_labels, T = b.lengths[n];
        const ChainView chain = plain(n, arcs, workspace);
        const double found = log_partition(chain);
        if (!std::isfinite(found) || !states_) return found;
        workspace.probs.resize(T * L);
        workspace.pairs.resize((T - 1) * L * L);
        log_marginals(chain, workspace.probs.data(), workspace.pairs.data());
        for (std::int64_t i = 0; i < T * L; ++i)
            states_[n * b.n_positions * L + i] = static_cast<Real>(workspace.probs[i]);
        if (into)
            for (std::int64_t i = 0; i < (T - 1) * L * L; ++i)
                into[i % (L * L)] += (weights_ ? weights_[n] : 1) * workspace.pairs[i];
        return found;
    }

    const Real* weights_;
    double* log_partition_;
    Real *states_, *arcs_;
    BatchArcs<Real> shared_;

  public:
    const Kernels<Real>& kernels;
    const std::int32_t stride;
};

// function(n, spans) for the spans of each chain.
template <class Function>
void each_spans(const ChainBatch<double>& batch, const SpanLabels& labels, int n_threads,
                const Function& function) {
    if (labels.n_labels() != batch.n_labels)
        throw std::invalid_argument("the labels of spans must be those of the chains");
    const Batch<double> run(batch, nullptr, nullptr, nullptr, nullptr);
    std::vector<ChainWorkspace<double>> workspaces(static_cast<std::size_t>(std::max(1, n_threads)));
    parallel_for(batch.n_chains, n_threads, [&](std::int64_t n, int worker) {
        const FlushSubnormals flush;
        run.with_spans(n, workspaces[worker], labels, [&](auto& spans) { function(n, spans); });
    });
}

}  // namespace

std::vector<std::vector<ScoredSpan>> batch_spans(const ChainBatch<double>& batch, const SpanLabels& labels,
                                                 double threshold, int n_threads) {
    std::vector<std::vector<ScoredSpan>> found(static_cast<std::size_t>(batch.n_chains));
    each_spans(batch, labels, n_threads, [&](std::int64_t n, auto& spans) {
        spans.find(threshold, found[n]);
        std::sort(found[n].begin(), found[n].end());
    });
    return found;
}

void batch_span_probabilities(const ChainBatch<double>& batch, const SpanLabels& labels,
                              std::vector<std::vector<ScoredSpan>>& given, int n_threads) {
    each_spans(batch, labels, n_threads, [&](std::int64_t n, auto& spans) { spans.probabilities(given[n]); });
}

void batch_n_spans(const ChainBatch<double>& batch, const SpanLabels& labels, double* out, int n_threads) {
    std::fill_n(out, batch.n_chains, 0.0);
    each_spans(batch, labels, n_threads,
               [&](std::int64_t n, auto& spans) { out[n] = spans.expected_number(); });
}

template <class Real>
void batch_expectations(const ChainBatch<Real>& batch, const Real* weights, double* log_partition,
                        Real* states, Real* arcs, int n_threads) {
    Batch<Real>(batch, weights, log_partition, states, arcs).run(n_threads);
}

template <class Real>
void batch_best(const ChainBatch<Real>& batch, std::int64_t* labels, int n_threads) {
    const Batch<Real> run(batch, nullptr, nullptr, nullptr, nullptr);
    std::vector<ChainWorkspace<Real>> workspaces(static_cast<std::size_t>(std::max(1, n_threads)));
    std::fill_n(labels, batch.n_chains * batch.n_positions, std::int64_t(-1));
    parallel_for(batch.n_chains, n_threads, [&](std::int64_t n, int worker) {
        const std::int64_t T = batch.lengths[n];
        if (T == 0) return;
        ChainWorkspace<Real>& workspace = workspaces[worker];
        workspace.work.reserve(T, run.stride, false);
        run.fill(n, workspace.work.states.data());
        std::vector<std::int32_t> found(static_cast<std::size_t>(T), -1);
        best_labels<Real>(run.kernels, run.arcs_of(n, workspace).scores.data(), run.stride, {}, T,
                          batch.n_labels, workspace.work.states.data(), workspace.work.forward.data(),
                          found.data());
        std::copy(found.begin(), found.end(), labels + n * batch.n_positions);
    });
}

template void batch_expectations(const ChainBatch<float>&, const float*, double*, float*, float*, int);
template void batch_expectations(const ChainBatch<double>&, const double*, double*, double*, double*, int);
template void batch_best(const ChainBatch<float>&, std::int64_t*, int);
template void batch_best(const ChainBatch<double>&, std::int64_t*, int);

}  // namespace crfkit
