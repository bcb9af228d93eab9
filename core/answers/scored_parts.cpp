#include "answers/scored_parts.hpp"

#include "answers/path_sequence.hpp"
#include "training/part_loss.hpp"

namespace crfkit {

class ScoredParts::Reader final : public PathSequence<Reader> {
  public:
    explicit Reader(const ScoredParts& data)
        : PathSequence(data.layout().n_labels), data_(data), reader_(data.source_->open()) {}

    void load(std::int64_t n) override {
        first_ = data_.design().sequence_ptr[n];
        reader_->load(n, parts_);
        scores_.set(parts_, data_.w_.data());
    }
    void restrict(const Annotation& allowed) override {
        for (std::int64_t j = 0; j < parts_.n_nodes(); ++j)
            if (parts_.label[j] >= 0 && !allowed.possible(first_ + parts_.level_of[j], parts_.label[j]))
                scores_.nodes[j] = kAbsent;
    }

    struct Graph : ScoredArrayGraph {
        Graph(const Parts& parts, const PartScores& scores)
            : ScoredArrayGraph(parts, scores.arcs, scores.nodes), labels(parts.label) {}
        std::int32_t label(std::int64_t, std::int64_t node) const { return labels[node]; }
        const std::vector<std::int32_t>& labels;
    };
    Graph graph(bool) const { return {parts_, scores_}; }

  private:
    const ScoredParts& data_;
    std::unique_ptr<PartReader> reader_;
    std::int64_t first_ = 0;
    Parts parts_;
    PartScores scores_;
};

std::unique_ptr<ScoredSequence> ScoredParts::reader() const { return std::make_unique<Reader>(*this); }

}  // namespace crfkit
