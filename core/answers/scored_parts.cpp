#include "answers/scored_parts.hpp"

#include "paths/engine.hpp"
#include "paths/label_sequences.hpp"
#include "training/part_loss.hpp"

namespace crfkit {

class ScoredParts::Reader : public ScoredSequence {
  public:
    explicit Reader(const ScoredParts& data) : data_(data), parts_of_(data.source_->open()) {}

    void load(std::int64_t n) override {
        first_ = data_.design().sequence_ptr[n];
        parts_of_->load(n, parts_);
        scores_.set(parts_, data_.w_.data());
    }
    void restrict(const Annotation& allowed) override {
        each_label([&](std::int64_t j, std::int64_t t, std::int32_t label) {
            if (!allowed.possible(first_ + t, label)) scores_.nodes[j] = kAbsent;
        });
    }
    void decode(std::int32_t* labels) override { crfkit::decode(graph(), best_, labels); }
    // P(y_t = b): the nodes of level t whose label is b.
    void marginals(double* probs) override {
        engine_.marginals(graph());
        each_label([&](std::int64_t j, std::int64_t t, std::int32_t label) {
            probs[t * data_.layout().n_labels + label] += engine_.node_probs[j];
        });
    }
    double log_partition() override { return engine_.log_partition(graph()); }
    std::vector<ScoredLabels> k_best(std::int64_t k) override { return crfkit::k_best(graph(), k); }
    void sample(std::int64_t n, const double* uniforms, std::int32_t* labels) override {
        const Graph scored = graph();
        engine_.log_partition(scored);
        crfkit::sample(scored, engine_, n, uniforms, labels);
    }

  private:
    struct Graph : ScoredArrayGraph {
        Graph(const Parts& parts, const PartScores& scores)
            : ScoredArrayGraph(parts, scores.arcs, scores.nodes), labels(parts.label) {}
        std::int32_t label(std::int64_t, std::int64_t node) const { return labels[node]; }
        const std::vector<std::int32_t>& labels;
    };
    Graph graph() const { return {parts_, scores_}; }
    template <class Function>
    void each_label(const Function& function) const {
        for (std::int64_t j = 0; j < parts_.n_nodes(); ++j)
            if (parts_.label[j] >= 0) function(j, parts_.level_of[j], parts_.label[j]);
    }

    const ScoredParts& data_;
    std::unique_ptr<PartReader> parts_of_;
    std::int64_t first_ = 0;
    Parts parts_;
    PartScores scores_;
    PathEngine engine_;
    std::vector<double> best_;  // for Viterbi
};

std::unique_ptr<ScoredSequence> ScoredParts::reader() const { return std::make_unique<Reader>(*this); }

}  // namespace crfkit
