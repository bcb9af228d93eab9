#include "answers/chain_potentials.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "answers/path_sequence.hpp"
#include "answers/scored_lattices.hpp"
#include "answers/scored_parts.hpp"
#include "chain/evaluator.hpp"
#include "chain/label_context.hpp"
#include "chain/spans.hpp"
#include "chain/viterbi.hpp"
#include "data/candidates.hpp"
#include "lattice/design_lattices.hpp"
#include "lattice/lattice_parts.hpp"
#include "paths/spans.hpp"

namespace crfkit {

struct ChainPotentials::Rows {
    Rows(const Layout& layout, const double* w)
        : tables(layout, WeightTables<double>::kNever),
          some_arcs_missing(layout.bigrams && !layout.bigrams->soft) {
        tables.set(w, 1);
        tables.list_features();
        arcs.set(tables, layout.n_labels, nullptr);
        arcs.table.some_missing = some_arcs_missing;
    }
    WeightTables<double> tables;
    SharedArcs<double> arcs;
    bool some_arcs_missing;
};

struct ChainPotentials::Arcs {
    Arcs(const Layout& layout, const double* w) : model(layout) { model.score(w, tables); }
    ArcModel model;
    ArcTables tables;
};

// One sequence by whole rows of labels. Sums use the scaled kernels where these are exact, else log space.
class ChainPotentials::RowReader : public ScoredSequence {
  public:
    RowReader(const Layout& layout, const Design& design, const Rows& rows, const Scorer<double>& scorer,
              bool local)
        : layout_(layout), design_(design), rows_(rows), scorer_(scorer), local_(local) {}

    void load(std::int64_t n) override {
        restricted_ = false;
        score(n);
        close_labels(design_.allowed, first_, n_positions_, layout_.n_labels, rows_.tables.stride,
                     work_.scores.data());
    }
    // The scores of sequence n, whatever its allowed labels are.
    void score(std::int64_t n) {
        first_ = design_.sequence_ptr[n];
        n_positions_ = design_.sequence_ptr[n + 1] - first_;
        work_.reserve(n_positions_, rows_.tables.stride, false);
        scorer_.score(n, work_.scores.data());
        own_arcs_ = local_ || design_.arcs.ptr.size() > 0;
        safe_ = rows_.tables.arc_spread <= WeightTables<double>::kSafeSpread;
        work_.position_arcs.clear();
        if (local_)
            normalise_locally();
        else if (own_arcs_)
            safe_ &=
                prepare_own_arcs<double>(scorer_, nullptr, layout_.n_labels, first_, n_positions_, work_);
    }
    PlainChain plain() const {
        return PlainChain(work_.scores.data(), rows_.tables.arcs, work_.own_scores, work_.position_arcs,
                          n_positions_, layout_.n_labels, rows_.tables.stride);
    }
    void restrict(const Annotation& allowed) override {
        restricted_ = true;
        for (std::int64_t t = 0; t < n_positions_; ++t)
            allowed.forbidden(first_ + t, layout_.n_labels, [&](std::int32_t b) {
                work_.scores[t * rows_.tables.stride + b] = WeightTables<double>::kNever;
            });
    }
    void decode(std::int32_t* labels) override {
        std::vector<const double*> own;
        if (own_arcs_) own = work_.arc_scores(n_positions_, rows_.tables.arcs.size());
        require_possible(best_labels<double>(rows_.tables, own, n_positions_, layout_.n_labels,
                                             work_.scores.data(), work_.forward.data(), labels));
    }
    void marginals(double* probs) override {
        double log_z = 0;
        if (!sum_product(log_z)) {
            require_possible(log_marginals(plain().view, probs, nullptr));
            return;
        }
        require_possible(log_z);
        for (std::int64_t t = 0; t < n_positions_; ++t)
            std::copy_n(work_.probs.data() + t * rows_.tables.stride, layout_.n_labels,
                        probs + t * layout_.n_labels);
    }
    double log_partition() override {
        double log_z = 0;
        return sum_product(log_z) ? log_z : crfkit::log_partition(plain().view);
    }
    std::vector<ScoredLabels> k_best(std::int64_t k) override {
        const PlainChain chain = plain();
        return crfkit::k_best(ChainGraph(chain.view), k);
    }
    void sample(std::int64_t n, const double* uniforms, std::int32_t* labels) override {
        const PlainChain chain = plain();
        const ChainGraph graph(chain.view);
        PathEngine engine;
        require_possible(engine.log_partition(graph));
        crfkit::sample(graph, engine, n, uniforms, labels);
    }
    void spans(const SpanLabels& labels, double threshold, std::vector<ScoredSpan>& found) override {
        with_spans(labels, [&](auto& spans) { spans.find(threshold, found); });
    }
    void span_probabilities(const SpanLabels& labels, std::span<ScoredSpan> given) override {
        with_spans(labels, [&](auto& spans) { spans.probabilities(given); });
    }
    double n_spans(const SpanLabels& labels) override {
        double number = 0;
        with_spans(labels, [&](auto& spans) { number = spans.expected_number(); });
        return number;
    }
    ExplainedLabels explain(std::int64_t i, std::int32_t label, std::int32_t against) override {
        double log_z = 0;
        if (!restricted_ && sum_product(log_z)) {  // its messages serve to compare labels within one pass
            require_possible(log_z);
            choose_labels(work_.probs.data() + i * rows_.tables.stride, layout_.n_labels, label, against);
            const ChainContext chain = context();
            return {{label, against}, {chain.of(i, label), chain.of(i, against)}};
        }
        const PlainChain chain = plain();
        const ChainGraph graph(chain.view);
        PathEngine engine;
        log_z = engine.marginals(graph, true);
        require_possible(log_z);
        return explain_labels(graph, engine, log_z, i, label, against, layout_.n_labels);
    }
    WindowContext explain_window(std::int64_t first, std::int64_t size) override {
        double log_z = 0;
        if (sum_product(log_z))
            return log_z > kAbsent ? context().window(log_z, first, size) : WindowContext{};
        const PlainChain chain = plain();
        const ChainGraph graph(chain.view);
        PathEngine engine;
        log_z = engine.marginals(graph, true);
        if (!(log_z > kAbsent)) return {};
        return window_context(graph, engine, log_z, first, size, layout_.n_labels);
    }

  private:
    // After sum_product.
    ChainContext context() {
        std::vector<const double*> own;
        if (own_arcs_) own = work_.arc_scores(n_positions_, rows_.tables.arcs.size());
        return ChainContext(work_.messages(work_.probs.data(), 1), work_.scores.data(), n_positions_,
                            rows_.arcs.table, own_arcs_ ? work_.position_arcs.data() : nullptr,
                            rows_.tables.arcs.data(), std::move(own));
    }
    // function(spans) with the spans of the scaled chain where that is exact, else by the path engine.
    template <class Function>
    void with_spans(const SpanLabels& labels, const Function& function) {
        double log_z = 0;
        if (sum_product(log_z)) {
            require_possible(log_z);
            const Messages<double> messages = work_.messages(work_.probs.data(), 1);
            ChainSpans spans(messages, rows_.arcs.table, own_arcs_ ? work_.position_arcs.data() : nullptr,
                             n_positions_, labels);
            function(spans);
        } else {
            const PlainChain chain = plain();
            const ChainGraph graph(chain.view);
            PathEngine engine;
            require_possible(engine.marginals(graph, true));
            PathSpans spans(graph, engine, labels);
            function(spans);
        }
    }
    // log p(b | a) as transition scores, with p(b | a) = exp(emission(b) + transition(a, b)) / Σ_b of the
    // same (McCallum et al. 2000), and log p(b) as the emissions of the first position: a chain whose Z is 1.
    void normalise_locally() {
        const std::int64_t S = rows_.tables.stride, L = layout_.n_labels;
        work_.position_arcs.assign(static_cast<std::size_t>(n_positions_), {0, nullptr, nullptr});
        for (Buffer<double>* tables : {&work_.own_scores, &work_.own_weight})
            tables->resize(std::max<std::int64_t>(n_positions_ - 1, 0) * L * S);
        for (std::int64_t t = 1; t < n_positions_; ++t) {
            double* table = work_.own_scores.data() + (t - 1) * L * S;
            double* emissions = work_.scores.data() + t * S;
            if (scorer_.has_own_arcs(first_ + t))
                scorer_.score_arcs(first_ + t, table);
            else
                std::copy_n(rows_.tables.arcs.data(), L * S, table);
            for (std::int64_t a = 0; a < L; ++a) {
                for (std::int64_t b = 0; b < L; ++b) table[a * S + b] += emissions[b];
                subtract_log_sum(table + a * S, L);
            }
            std::fill_n(emissions, L, 0.0);
            double* weight = work_.own_weight.data() + (t - 1) * L * S;
            rows_.tables.kernels.exp_shifted(table, 0, weight, L * S);
            work_.position_arcs[t] = {0, weight, nullptr};
        }
        subtract_log_sum(work_.scores.data(), L);
        safe_ = false;  // probabilities of any size: sums are taken in log space
    }
    static void subtract_log_sum(double* scores, std::int64_t n) {
        const double maximum = *std::max_element(scores, scores + n);
        if (maximum == WeightTables<double>::kNever) return;  // of a label that no other may follow
        double sum = 0;
        for (std::int64_t i = 0; i < n; ++i) sum += std::exp(scores[i] - maximum);
        const double log_sum = maximum + std::log(sum);
        for (std::int64_t i = 0; i < n; ++i) scores[i] -= log_sum;
    }
    // Scaled forward–backward: log Z, and P(y_t) in work_.probs. False where that is not exact.
    bool sum_product(double& log_z) {
        if (!safe_) return false;
        const WeightTables<double>& tables = rows_.tables;
        std::copy_n(work_.scores.begin(), n_positions_ * tables.stride, work_.states.begin());
        const Messages<double> messages = work_.messages(work_.probs.data(), 1);
        log_z = tables.kernels.sum_product(rows_.arcs.table, own_arcs_ ? work_.position_arcs.data() : nullptr,
                                           n_positions_, messages);
        return !rows_.some_arcs_missing ||
               (log_z > -INFINITY &&
                messages_are_exact(messages, n_positions_, layout_.n_labels, tables.stride));
    }

    const Layout& layout_;
    const Design& design_;
    const Rows& rows_;
    const Scorer<double>& scorer_;
    Workspace<double> work_;
    std::int64_t first_ = 0, n_positions_ = 0;
    bool own_arcs_ = false, safe_ = false, restricted_ = false;
    const bool local_;
};

class ChainPotentials::ScoredRows : public ScoredSequences {
  public:
    ScoredRows(const Layout& layout, const Design& design, const Rows& rows, bool local)
        : ScoredSequences(layout, design), rows_(rows), scorer_(layout, design, rows.tables), local_(local) {}

  protected:
    std::unique_ptr<ScoredSequence> reader() const override {
        return std::make_unique<RowReader>(layout(), design(), rows_, scorer_, local_);
    }

  private:
    const Rows& rows_;
    Scorer<double> scorer_;
    bool local_;
};

namespace {

// Facets beside dense blocks or features of transitions.
struct FacetLattices {
    FacetLattices(const Layout& layout, const Design& design, const ArcModel& model, int n_threads)
        : data(layout, model, design, n_threads), parts(layout, design, nullptr, data) {}

    LatticeData data;
    LatticeParts parts;
};

}  // namespace

ChainPotentials::ChainPotentials(std::shared_ptr<const Layout> layout, const double* w, bool local)
    : layout_(std::move(layout)), w_(w, w + layout_->n_weights()), local_(local) {}

ChainPotentials::~ChainPotentials() = default;

const ChainPotentials::Rows& ChainPotentials::rows() const {
    rows_once_.run([&] { rows_ = std::make_unique<const Rows>(*layout_, w_.data()); });
    return *rows_;
}

const ChainPotentials::Arcs& ChainPotentials::arcs() const {
    arcs_once_.run([&] { arcs_ = std::make_unique<const Arcs>(*layout_, w_.data()); });
    return *arcs_;
}

std::unique_ptr<ScoredSequences> ChainPotentials::score(const Design& design, int n_threads) const {
    design.check_layout(*layout_);
    if (!local_ && (design.as_lattices || design.as_batches)) {
        const auto& [model, tables] = arcs();
        if (!design.is_plain()) {
            const auto lattices = std::make_shared<const FacetLattices>(*layout_, design, model, n_threads);
            return std::make_unique<ScoredParts>(
                *layout_, design, std::shared_ptr<const PartSource>(lattices, &lattices->parts), w_);
        }
        return std::make_unique<ScoredLattices>(
            *layout_, design, design_lattices(*layout_, design, model, tables, w_.data(), n_threads));
    }
    if (layout_->bigrams || !design.allowed.empty())
        check_possible(existing_bigrams(*layout_), design, nullptr, n_threads);
    return std::make_unique<ScoredRows>(*layout_, design, rows(), local_);
}

void ChainPotentials::scores(const Design& design, std::int64_t n, double* emissions,
                             double* transitions) const {
    design.check_layout(*layout_);
    if (!layout_->facets.empty()) throw std::invalid_argument("the labels have facets");
    if (n < 0 || n >= design.n_sequences()) throw std::invalid_argument("there is no such sequence");
    const Scorer<double> scorer(*layout_, design, rows().tables);
    RowReader reader(*layout_, design, rows(), scorer, local_);
    reader.score(n);
    const PlainChain chain = reader.plain();
    std::copy(chain.states.begin(), chain.states.end(), emissions);
    std::copy(chain.arcs.begin(), chain.arcs.end(), transitions);
}

}  // namespace crfkit
