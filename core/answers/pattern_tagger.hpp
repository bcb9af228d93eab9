// The answers of a trained model with patterns for whole data sets of trellises.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "answers/k_best.hpp"
#include "data/annotation.hpp"
#include "data/layout.hpp"
#include "data/weight_tables.hpp"
#include "patterns/trellis.hpp"
#include "patterns/trellis_run.hpp"

namespace crfkit {

class PatternTagger {
  public:
    // w [D]: the weights of the layout and, from `first_weight` on, those of the patterns.
    PatternTagger(std::shared_ptr<const Layout> layout, std::vector<double> w, std::int64_t first_weight);

    const Layout& layout() const { return *layout_; }

    // The best labels of each sequence, into labels [T].
    void best(const Trellises& trellises, std::int32_t* labels, int n_threads) const;
    // P(y_t), into marginals [T, L].
    void marginals(const Trellises& trellises, double* marginals, int n_threads) const;
    // log Z of each sequence, into out [N]; `allowed` may restrict the labels (its weights are ignored).
    void log_partitions(const Trellises& trellises, const Annotation* allowed, double* out,
                        int n_threads) const;
    std::vector<std::vector<ScoredLabels>> k_best(const Trellises& trellises, std::int64_t k,
                                                  int n_threads) const;
    // n samples of each sequence: uniforms and labels hold [n, length] for one sequence after the other.
    void sample(const Trellises& trellises, std::int64_t n, const double* uniforms, std::int32_t* labels,
                int n_threads) const;

  private:
    struct Room;
    template <class Function>
    void each_sequence(const Trellises& trellises, bool exponentiated, int n_threads,
                       const Function& function) const;

    std::shared_ptr<const Layout> layout_;
    std::vector<double> w_;
    std::int64_t first_weight_;
    WeightTables<double> tables_;
};

}  // namespace crfkit
