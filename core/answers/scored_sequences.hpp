// A data set at the weights of a trained model, and every question on it.
//
// A structure takes part by one class: a ScoredSequence, which loads one sequence after the other with its
// scores and answers the questions on it (most by the path engine, paths/engine.hpp; dense chains by kernels
// for whole rows of labels). Threads, the order of the answers and their arrays are the same for all.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/annotation.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"
#include "paths/label_context.hpp"
#include "paths/label_sequences.hpp"
#include "paths/span_labels.hpp"

namespace crfkit {

// Two labels of one position, and where their log-odds come from.
struct ExplainedLabels {
    std::int32_t labels[2];
    LabelContext contexts[2];
};

// One sequence and its scores. Questions are asked after load(), each thread has an object of its own.
class ScoredSequence {
  public:
    virtual ~ScoredSequence() = default;
    // Sequence n of the data set, which is not empty.
    virtual void load(std::int64_t n) = 0;
    // Forbids the labels of the loaded sequence that `allowed` excludes.
    virtual void restrict(const Annotation& allowed) = 0;

    // argmax_y score(y) (Viterbi), into labels [T].
    virtual void decode(std::int32_t* labels) = 0;
    // P(y_t = b), into probs [T, L], which holds zeros.
    virtual void marginals(double* probs) = 0;
    // log Z; −inf where no label sequence is possible.
    virtual double log_partition() = 0;
    // The k label sequences with the highest scores, best first.
    virtual std::vector<ScoredLabels> k_best(std::int64_t k) = 0;
    // n exact samples by uniforms [n, T], into labels [n, T].
    virtual void sample(std::int64_t n, const double* uniforms, std::int32_t* labels) = 0;
    // The spans with a probability of at least `threshold` > 0, added to `found` in any order.
    virtual void spans(const SpanLabels& labels, double threshold, std::vector<ScoredSpan>& found) = 0;
    // Fills in the probabilities of given spans.
    virtual void span_probabilities(const SpanLabels& labels, std::span<ScoredSpan> given) = 0;
    // The expected number of spans.
    virtual double n_spans(const SpanLabels& labels) = 0;
    // Of position i, labels that are −1 are chosen by their probabilities. Contexts of labels that are hardly
    // possible may be left out (label_context.hpp).
    virtual ExplainedLabels explain(std::int64_t i, std::int32_t label, std::int32_t against) = 0;
    // Of `size` positions from `first` on.
    virtual WindowContext explain_window(std::int64_t first, std::int64_t size) = 0;
};

// The labels of an explanation by the probabilities [L] of all: the likeliest one, and the likeliest other.
void choose_labels(const double* probs, std::int32_t n_labels, std::int32_t& label, std::int32_t& against);

class ScoredSequences {
  public:
    virtual ~ScoredSequences() = default;

    const Layout& layout() const { return layout_; }
    const Design& design() const { return design_; }
    // L, how many outcomes a position has: the labels of the layout.
    virtual std::int32_t n_labels() const { return layout_.n_labels; }

    // decode of each sequence, into labels [T].
    void decode(std::int32_t* labels, int n_threads) const;
    // P(y_t), into marginals [T, L].
    void marginals(double* marginals, int n_threads) const;
    // log Z of each sequence, into out [N]; `allowed` may restrict the labels (its weights are ignored).
    void log_partitions(const Annotation* allowed, double* out, int n_threads) const;
    std::vector<std::vector<ScoredLabels>> k_best(std::int64_t k, int n_threads) const;
    // n samples of each sequence: uniforms and labels hold [n, length] for one sequence after the other.
    void sample(std::int64_t n, const double* uniforms, std::int32_t* labels, int n_threads) const;
    // The spans of each sequence with a probability of at least `threshold` > 0, sorted.
    std::vector<std::vector<ScoredSpan>> spans(const SpanLabels& labels, double threshold,
                                               int n_threads) const;
    // The spans of the label sequence with the highest score (Viterbi), with their probabilities.
    std::vector<std::vector<ScoredSpan>> decoded_spans(const SpanLabels& labels, int n_threads) const;
    // The expected number of spans of each sequence, into out [N].
    void n_spans(const SpanLabels& labels, double* out, int n_threads) const;
    // Why position i of sequence n has a label and not another one; −1: the likeliest, and the likeliest
    // other.
    ExplainedLabels explain(std::int64_t n, std::int64_t i, std::int32_t label, std::int32_t against) const;
    // The same of `size` positions of sequence n from `first` on, for each of several events: allowed
    // [events, size, L] says which labels these positions may have, 0: not.
    std::vector<WindowContext> explain_windows(std::int64_t n, std::int64_t first, std::int64_t size,
                                               std::span<const std::uint8_t> allowed) const;

  protected:
    // Layout and design must outlive it.
    ScoredSequences(const Layout& layout, const Design& design) : layout_(layout), design_(design) {}
    virtual std::unique_ptr<ScoredSequence> reader() const = 0;
    // One that explanations are asked of; it may be slow in all else.
    virtual std::unique_ptr<ScoredSequence> explaining_reader() const { return reader(); }

  private:
    template <class Function>
    void each_sequence(int n_threads, const Function& function) const;
    void check(const SpanLabels& labels) const;

    const Layout& layout_;
    const Design& design_;
};

}  // namespace crfkit
