#include "lattice/function_loss.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>

#include "base/lists.hpp"
#include "base/threads.hpp"
#include "data/blocks.hpp"
#include "data/candidates.hpp"
#include "lattice/lattice_loss.hpp"
#include "training/part_loss.hpp"

namespace crfkit {
namespace {

constexpr std::int64_t kMostBuffers = 16;
constexpr std::int64_t kBufferNumbers = 1 << 24;  // in all buffers together
constexpr std::int64_t kWeightsPerTask = 1 << 14;

class FunctionLoss final : public DataLoss {
  public:
    FunctionLoss(std::shared_ptr<const FunctionSlices> slices, std::vector<std::int64_t> sequence_ptr,
                 Annotation gold, std::int64_t weights, int threads)
        : DataLoss(weights, static_cast<std::int64_t>(sequence_ptr.size()) - 1, threads),
          slices_(std::move(slices)),
          sequence_ptr_(std::move(sequence_ptr)),
          gold_(std::move(gold)),
          parts_(*slices_, sequence_ptr_, gold_, weights),
          sequences_(parts_) {
        const std::int64_t n_positions = sequence_ptr_.empty() ? 0 : sequence_ptr_.back();
        check_pointers(sequence_ptr_, static_cast<std::size_t>(n_positions), "sequence_ptr");
        if (static_cast<std::int64_t>(gold_.weights.size()) != n_sequences)
            throw std::invalid_argument("there must be one weight for each sequence");
        if (static_cast<std::int64_t>(gold_.labels.size()) != n_positions ||
            (!gold_.set_ptr.empty() && static_cast<std::int64_t>(gold_.set_ptr.size()) != n_positions + 1))
            throw std::invalid_argument("the annotation must have as many positions as the sequences, " +
                                        std::to_string(n_positions));
    }

    double evaluate(const double* w, double* gradient) override { return sum(w, nullptr, gradient); }
    void hessian_vector(const double* w, const double* v, double* out) override { sum(w, v, out); }
    // Sequence by sequence, in any order, whatever fits into memory.
    const SequenceSource& sequences() override {
        check_all();
        return sequences_;
    }

    std::unique_ptr<Mistakes> mistakes(const double* w) override {
        check_all();
        return std::make_unique<PartMistakes>(parts_, w);
    }

  private:
    // weight · (P − P_gold) of every part of a slice, or how it changes along v.
    struct Residuals {
        std::vector<double> nodes, arcs;
    };
    // Slices follow each other in a fixed order: neither memory nor threads change a bit of the sums.
    double sum(const double* w, const double* v, double* out) {
        std::fill_n(out, n_weights, 0.0);
        double value = 0;
        for (std::int64_t i = 0; i < slices_->n_slices(); ++i) {
            const auto slice = slices_->slice(i);
            check(*slice);
            Residuals residuals;
            value += differentiate(*slice, w, v, residuals);
            gather(*slice, residuals, out);
        }
        checked_ = true;
        return value;
    }

    void check_all() {
        for (std::int64_t i = 0; !checked_ && i < slices_->n_slices(); ++i) check(*slices_->slice(i));
        checked_ = true;
    }

    // Sizes in each pass, since a slice may have been made again; the annotation in the first one.
    void check(const FunctionSlice& slice) const {
        const bool exists = slice.first >= 0 && slice.first <= slice.last && slice.last <= n_sequences;
        const std::int64_t first = exists ? sequence_ptr_[slice.first] : 0;
        const std::int64_t last = exists ? sequence_ptr_[slice.last] : 0;
        if (!exists || !slice.lattices || slice.last - slice.first != slice.lattices->design->n_sequences() ||
            last - first != slice.lattices->design->n_positions())
            throw std::invalid_argument("a slice must have the lattices of its sequences");
        for (const ActiveFeatures& block : slice.active) slice.lattices->check(block, n_weights);
        const Design& design = *slice.lattices->design;
        if (checked_) return;
        const Annotation gold = gold_.between(first, last);
        check_annotation(*slice.lattices->layout, design, gold);
        check_possible(slice.lattices->bigrams, design, &gold, n_threads);
    }

    // First half, sequence by sequence: scores → value and residuals of all parts.
    double differentiate(const FunctionSlice& slice, const double* w, const double* v,
                         Residuals& residuals) const {
        const Lattices& lattices = *slice.lattices;
        const auto& ptr = lattices.design->sequence_ptr;
        const std::int64_t first_position = sequence_ptr_[slice.first];
        struct Workspace {
            ScoredLattice scored;
            std::vector<double> node_direction, arc_direction;
        };
        std::vector<Workspace> workspaces(static_cast<std::size_t>(std::max(n_threads, 1)));
        std::vector<double> losses(static_cast<std::size_t>(lattices.n_sequences()), 0.0);
        residuals.nodes.assign(static_cast<std::size_t>(lattices.candidates.n_nodes()), 0.0);
        residuals.arcs.assign(static_cast<std::size_t>(lattices.n_arcs()), 0.0);
        parallel_for(lattices.n_sequences(), n_threads, [&](std::int64_t n, int worker) {
            if (ptr[n] == ptr[n + 1]) return;
            auto& [scored, node_direction, arc_direction] = workspaces[worker];
            Lattice& lattice = scored.lattice;
            lattices.build(n, lattice);
            lattices.score(slice.active, w, n, lattice, scored.nodes, scored.own_arcs.scores);
            scored.own_arcs.exponentiate(lattices.bigrams.soft);
            if (v) lattices.score(slice.active, v, n, lattice, node_direction, arc_direction);
            const LatticeDirection direction{node_direction, arc_direction};
            double* nodes = residuals.nodes.data() + lattices.candidates.position_ptr[ptr[n]];
            double* arcs = residuals.arcs.data() + lattices.arc_ptr[n];
            losses[n] = lattice_loss<double>(lattice, scored.engine, scored.own_arcs, scored.nodes,
                                             v ? &direction : nullptr, gold_, first_position + ptr[n],
                                             gold_.weights[slice.first + n],
                                             {nodes, arcs + lattices.n_starts(lattice)});
            lattices.each_boundary_arc(n, lattice,
                                       [&](std::int64_t k, std::int64_t j) { arcs[k] = nodes[j]; });
        });
        return std::accumulate(losses.begin(), losses.end(), 0.0);
    }

    // Second half: Φᵀ residuals, in a few buffers of D numbers each. How many there are, and what each of
    // them sums, depends on the data alone.
    void gather(const FunctionSlice& slice, const Residuals& residuals, double* out) const {
        const Lattices& lattices = *slice.lattices;
        std::int64_t n_entries = 0;
        for (const ActiveFeatures& block : slice.active) n_entries += block.n_entries();
        const std::int64_t worth = std::min(kBufferNumbers, n_entries) / std::max<std::int64_t>(n_weights, 1);
        const auto chunks = cut_evenly(*lattices.design, 0, lattices.n_sequences(),
                                       std::clamp<std::int64_t>(worth, 1, kMostBuffers));
        const auto n_chunks = static_cast<std::int64_t>(chunks.size()) - 1;
        const auto sum = [&](std::int64_t chunk, double* to) {
            const std::int64_t first = chunks[chunk], last = chunks[chunk + 1];
            const auto node = [&](std::int64_t n) {
                return lattices.candidates.position_ptr[lattices.design->sequence_ptr[n]];
            };
            for (const ActiveFeatures& block : slice.active) {
                const std::int64_t begin = block.on_arcs ? lattices.arc_ptr[first] : node(first);
                const std::int64_t end = block.on_arcs ? lattices.arc_ptr[last] : node(last);
                const auto& of_parts = block.on_arcs ? residuals.arcs : residuals.nodes;
                block.add(begin, end - begin, of_parts.data() + begin, to);
            }
        };
        if (n_chunks < 2) {
            if (n_chunks == 1) sum(0, out);
            return;
        }
        std::vector<std::vector<double>> buffers(static_cast<std::size_t>(n_chunks));
        parallel_for(n_chunks, n_threads, [&](std::int64_t chunk, int) {
            buffers[chunk].assign(static_cast<std::size_t>(n_weights), 0.0);
            sum(chunk, buffers[chunk].data());
        });
        parallel_for((n_weights + kWeightsPerTask - 1) / kWeightsPerTask, n_threads,
                     [&](std::int64_t task, int) {
                         const std::int64_t begin = task * kWeightsPerTask;
                         const std::int64_t end = std::min(n_weights, begin + kWeightsPerTask);
                         for (const auto& buffer : buffers)
                             for (std::int64_t d = begin; d < end; ++d) out[d] += buffer[d];
                     });
    }

    std::shared_ptr<const FunctionSlices> slices_;
    std::vector<std::int64_t> sequence_ptr_;
    Annotation gold_;
    FunctionParts parts_;
    PartSequences sequences_;
    bool checked_ = false;  // whether the annotation of all slices is possible
};

}  // namespace

std::unique_ptr<DataLoss> function_loss(std::shared_ptr<const FunctionSlices> slices,
                                        std::vector<std::int64_t> sequence_ptr, Annotation gold,
                                        std::int64_t n_weights, int n_threads) {
    return std::make_unique<FunctionLoss>(std::move(slices), std::move(sequence_ptr), std::move(gold),
                                          n_weights, n_threads);
}

}  // namespace crfkit
