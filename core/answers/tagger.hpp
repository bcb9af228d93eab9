// A trained model's answers for whole data sets.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "answers/k_best.hpp"
#include "answers/lattice_tagger.hpp"
#include "base/forks.hpp"
#include "chain/evaluator.hpp"
#include "chain/workspace.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"
#include "data/weight_tables.hpp"

namespace crfkit {

class Tagger {
  public:
    Tagger(std::shared_ptr<const Layout> layout, const double* w);

    const Layout& layout() const { return *layout_; }

    // The best labels of each sequence, into labels [T].
    void best(const Design& design, std::int32_t* labels, int n_threads) const;
    // P(y_t), into marginals [T, L].
    void marginals(const Design& design, double* marginals, int n_threads) const;
    // log Z of each sequence, into out [N]; `allowed` may restrict the labels (its weights are ignored).
    void log_partitions(const Design& design, const Annotation* allowed, double* out, int n_threads) const;
    std::vector<std::vector<ScoredLabels>> k_best(const Design& design, std::int64_t k, int n_threads) const;
    // The scores of the parts of sequence n, whatever its allowed labels are: emissions into states [T, L],
    // start and end included, and transitions into arcs: [T − 1, L, L] with by_position(), else [L, L].
    void scores(const Design& design, std::int64_t n, double* states, double* arcs) const;
    static bool by_position(const Design& design) { return design.arcs.ptr.size() > 0; }
    // n samples of each sequence: uniforms and labels hold [n, length] for one sequence after the other.
    void sample(const Design& design, std::int64_t n, const double* uniforms, std::int32_t* labels,
                int n_threads) const;

  private:
    struct Room;
    // The weights as the kernels for whole rows of labels want them.
    struct Dense {
        Dense(const Layout& layout, const double* w);
        WeightTables<double> tables;
        SharedArcs<double> arcs;
        bool some_arcs_missing;
    };
    const Dense& dense() const;
    void check(const Design& design, int n_threads) const;
    template <class Function>
    void each_sequence(const Design& design, int n_threads, Function function) const;

    std::shared_ptr<const Layout> layout_;
    std::vector<double> w_;
    LatticeTagger lattices_;
    mutable Once once_;
    mutable std::unique_ptr<const Dense> dense_;  // made when first needed
};

}  // namespace crfkit
