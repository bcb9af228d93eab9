#include "answers/scored_word_lattices.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "chain/log_chain.hpp"
#include "paths/engine.hpp"
#include "paths/k_best.hpp"
#include "paths/viterbi.hpp"
#include "training/part_loss.hpp"

namespace crfkit {

class ScoredWordLattices::Reader final : public ScoredSequence {
  public:
    explicit Reader(const ScoredWordLattices& data) : data_(data), reader_(data.parts_.open()) {}

    void load(std::int64_t n) override {
        const auto& ptr = data_.design().sequence_ptr;
        first_ = ptr[n];
        n_arcs_ = ptr[n + 1] - first_;
        reader_->load(n, parts_);
        scores_.set(parts_, data_.w_.data());
    }
    void restrict(const Annotation& allowed) override {
        for (std::int64_t j = 0; j < parts_.n_nodes(); ++j)
            if (parts_.label[j] >= 0 && !allowed.possible(first_ + parts_.label[j], kOnPath))
                scores_.nodes[j] = kAbsent;
    }

    void decode(std::int32_t* labels) override {
        std::fill_n(labels, n_arcs_, kOffPath);
        require_possible(viterbi(graph(), best_, on_path(labels)));
    }
    void marginals(double* probs) override {
        require_possible(engine_.marginals(graph()));
        for (std::int64_t a = 0; a < n_arcs_; ++a) probs[2 * a + kOffPath] = 1;
        for (std::int64_t j = 0; j < parts_.n_nodes(); ++j) {
            if (parts_.label[j] < 0) continue;
            double* const of_arc = probs + 2 * parts_.label[j];
            of_arc[kOnPath] = std::min(engine_.node_probs[j], 1.0);
            of_arc[kOffPath] = 1 - of_arc[kOnPath];
        }
    }
    double log_partition() override { return engine_.log_partition(graph()); }
    std::vector<ScoredLabels> k_best(std::int64_t k) override {
        std::vector<ScoredLabels> out;
        const ScoredArrayGraph scored = graph();
        KBestPaths paths(scored);
        while (static_cast<std::int64_t>(out.size()) < k && paths.next()) {
            out.push_back({paths.score(), std::vector<std::int32_t>(n_arcs_, kOffPath)});
            paths.each(on_path(out.back().labels.data()));
        }
        return out;
    }
    // The engine takes a number for each boundary but the first, of which there are no more than arcs.
    void sample(std::int64_t n, const double* uniforms, std::int32_t* labels) override {
        const ScoredArrayGraph scored = graph();
        require_possible(engine_.log_partition(scored));
        std::fill_n(labels, n * n_arcs_, kOffPath);
        engine_.sample(scored, n, uniforms,
                       [&](std::int64_t i, std::int64_t t, std::int64_t node, std::int64_t arc) {
                           on_path(labels + i * n_arcs_)(t, node, arc);
                       });
    }

    // Of the arcs that are on some path; all others are impossible.
    LabelContext explain_arc(double log_z, std::int32_t arc) {
        for (std::int64_t j = 0; j < parts_.n_nodes(); ++j)
            if (parts_.label[j] == arc) return node_context(graph(), engine_, log_z, parts_.level_of[j], j);
        return {};
    }
    double sum_paths() { return engine_.marginals(graph()); }

    // The spans of a path are its arcs: their marginals say it all.
    void spans(const SpanLabels&, double, std::vector<ScoredSpan>&) override { refuse_spans(); }
    void span_probabilities(const SpanLabels&, std::span<ScoredSpan>) override { refuse_spans(); }
    double n_spans(const SpanLabels&) override { refuse_spans(); }
    ExplainedLabels explain(std::int64_t, std::int32_t, std::int32_t) override { refuse_labels(); }
    WindowContext explain_window(std::int64_t, std::int64_t) override { refuse_labels(); }

  private:
    [[noreturn]] static void refuse_labels() {
        throw std::invalid_argument("the positions of a word lattice are arcs, which have no labels");
    }
    [[noreturn]] static void refuse_spans() {
        throw std::invalid_argument(
            "the positions of a word lattice are arcs, which have no spans of labels");
    }
    ScoredArrayGraph graph() const { return scores_.graph(parts_); }
    // Marks the arc of each node that a path passes.
    struct Marks {
        const Parts& parts;
        std::int32_t* labels;
        void operator()(std::int64_t, std::int64_t node, std::int64_t) const {
            if (parts.label[node] >= 0) labels[parts.label[node]] = kOnPath;
        }
    };
    Marks on_path(std::int32_t* labels) const { return {parts_, labels}; }

    const ScoredWordLattices& data_;
    std::unique_ptr<PartReader> reader_;
    std::int64_t first_ = 0, n_arcs_ = 0;
    Parts parts_;
    PartScores scores_;
    PathEngine engine_;
    std::vector<double> best_;  // for Viterbi
};

ScoredWordLattices::ScoredWordLattices(std::shared_ptr<const WordLattices> data, std::vector<double> w)
    : ScoredSequences(*data->layout, *data->design),
      parts_(data, std::nullopt, static_cast<std::int64_t>(w.size())),
      w_(std::move(w)) {}

ExplainedLabels ScoredWordLattices::explain_arcs(std::int64_t n, std::int32_t arc,
                                                 std::int32_t against) const {
    const auto& ptr = design().sequence_ptr;
    if (n < 0 || n >= design().n_sequences() || std::min(arc, against) < 0 ||
        std::max(arc, against) >= ptr[n + 1] - ptr[n])
        throw std::invalid_argument("there is no such arc");
    Reader reader(*this);
    reader.load(n);
    const double log_z = reader.sum_paths();
    require_possible(log_z);
    return {{arc, against}, {reader.explain_arc(log_z, arc), reader.explain_arc(log_z, against)}};
}

std::unique_ptr<ScoredSequence> ScoredWordLattices::reader() const { return std::make_unique<Reader>(*this); }

}  // namespace crfkit
