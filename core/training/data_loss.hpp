// The loss of a data set, as optimizers and penalties see it: numbers of D weights, no structure.
//
//   loss(w) = Σ_n weight_n (log Z_n(w) − log Z_gold,n(w))
//
// Z_n sums over all outputs of sequence n, Z_gold,n over those that its annotation allows (one output where
// all labels are known). With scores Φ_n w and P the marginals of the parts:
//
//   ∇ loss   = Σ_n weight_n Φ_nᵀ (P_n − P_gold,n)
//   ∇² loss v = Σ_n weight_n Φ_nᵀ (∂P_n − ∂P_gold,n), where ∂P is the change of P along the direction Φ_n v
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/scratch_memory.hpp"
#include "training/blocked_evaluator.hpp"
#include "training/mistakes.hpp"
#include "training/sequence_loss.hpp"

namespace crfkit {

// One thread at a time may ask; the answers are worked out on n_threads threads, with the same bits for any
// number of them. What a question needs is prepared when it is asked first.
class DataLoss {
  public:
    DataLoss(std::int64_t weights, std::int64_t sequences, int threads)
        : n_weights(weights), n_sequences(sequences), n_threads(threads) {}
    virtual ~DataLoss() = default;
    DataLoss(const DataLoss&) = delete;
    DataLoss& operator=(const DataLoss&) = delete;

    // Fills gradient [D] and returns the value at w [D].
    virtual double evaluate(const double* w, double* gradient) = 0;
    // Fills out [D] with ∇² loss(w) v.
    virtual void hessian_vector(const double* w, const double* v, double* out) = 0;
    // From now on answers in double precision. Returns whether that is a change.
    virtual bool refine() { return false; }
    // The losses of single sequences. It lives as long as this.
    virtual const SequenceSource& sequences() = 0;
    // Decoded outputs against the right ones, at weights w [D], which must outlive it, as must this.
    virtual std::unique_ptr<Mistakes> mistakes(const double* w) = 0;
    // The sequences ptr[i]..ptr[i+1]−1 lie together: methods that visit single sequences visit all of these
    // before others.
    virtual std::vector<std::int64_t> shard_ptr() const { return {0, n_sequences}; }

    // Moves to a file what is large and was made since this was asked last, to be read from there. Returns
    // whether that is (nearly) all that it holds; what cannot be moved stays in memory.
    virtual bool move_to(ScratchMemory&) { return false; }
    // Before the first question: it is that of a shard, beside which others are evaluated.
    virtual void set_shard() {}
    // Frees what the next question makes anew; losses of single sequences stay valid.
    virtual void release() {}
    // Gives `next`, which is asked next, what it would make in the same way: memory, and with `same_question`
    // what was made of the weights.
    virtual void hand_over(DataLoss& /*next*/, bool /*same_question*/) {}

    const std::int64_t n_weights;    // D
    const std::int64_t n_sequences;  // N
    const int n_threads;
};

// A loss that answers in single precision first: values are exact to about 1e-7, gradients and products to
// about 1e-5 of their norm, at half the cost. Sums over sequences are double in both.
//
// Loss, the class that derives from this, has `open<Real>()`, which makes an evaluator of this precision.
template <class Loss>
class TwoPrecisions : public DataLoss {
  public:
    double evaluate(const double* w, double* gradient) final { return answer(w, nullptr, gradient); }
    void hessian_vector(const double* w, const double* v, double* out) final { answer(w, v, out); }
    bool refine() final {
        const bool change = single_precision_;
        single_precision_ = false;
        single_.reset();
        return change;
    }
    void set_shard() final { is_shard_ = true; }
    void release() final {
        single_.reset();
        double_.reset();
    }
    void hand_over(DataLoss& next, bool same_question) final {
        auto* const other = dynamic_cast<TwoPrecisions*>(&next);
        if (!other || other == this) return;
        if (single_ && other->single_precision_)
            single_->hand_over(other->template evaluator<float>(), same_question);
        if (double_) double_->hand_over(other->template evaluator<double>(), same_question);
    }

  protected:
    TwoPrecisions(std::int64_t weights, std::int64_t sequences, bool single_precision, int threads)
        : DataLoss(weights, sequences, threads), single_precision_(single_precision) {}

    BlockUse block_use() const { return is_shard_ ? BlockUse::shard : BlockUse::side_by_side; }

    bool single_precision_;

  private:
    double answer(const double* w, const double* v, double* out) {
        if (single_precision_) {
            DataEvaluator& single = evaluator<float>();
            const double value = single.evaluate(w, v, out, n_threads);
            if (!single.unsafe) return value;
        }
        return evaluator<double>().evaluate(w, v, out, n_threads);
    }
    template <class Real>
    DataEvaluator& evaluator() {
        std::unique_ptr<DataEvaluator>& made = std::is_same_v<Real, float> ? single_ : double_;
        if (!made) made = static_cast<Loss*>(this)->template open<Real>();
        return *made;
    }

    std::unique_ptr<DataEvaluator> single_, double_;
    bool is_shard_ = false;
};

}  // namespace crfkit
