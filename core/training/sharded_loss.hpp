// The loss of a data set that is cut into shards: whole sequences, consecutive, cut by the data alone.
//
//   loss = loss of shard 0 + … + loss of shard n − 1, added in a fixed binary tree:
//   sum[0, n) = sum[0, m) + sum[m, n),   m half of n, rounded up
//
// Values, gradients and Hessian–vector products follow it. So their bits depend on the shards alone: not on
// threads, on where the data lie, or on who evaluates which shard.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/buffer.hpp"
#include "base/forks.hpp"
#include "training/data_loss.hpp"

namespace crfkit {

// Where the losses of shards come from. One thread at a time asks.
class ShardLosses {
  public:
    virtual ~ShardLosses() = default;
    // [n + 1] the first sequence of each shard, and N.
    virtual const std::vector<std::int64_t>& shard_ptr() const = 0;
    // The loss of shard i.
    virtual std::shared_ptr<DataLoss> open(std::int64_t i) = 0;
    // Whether open() gives the same loss each time: then it may be kept.
    virtual bool in_memory() const = 0;
    // Whether shard i, which was opened before, is opened again without being made anew.
    virtual bool keeps(std::int64_t) const { return in_memory(); }
    // Shard i is asked for next: it may be read meanwhile.
    virtual void expect(std::int64_t) {}
    // Something was made of shard i, and nobody uses it now: it may be stored.
    virtual void settle(std::int64_t) {}
    // Shard i is not asked for soon.
    virtual void close(std::int64_t) {}
};

// Losses that are all in memory.
class ShardsInMemory final : public ShardLosses {
  public:
    // Throws std::invalid_argument unless there is one, and all have the same number of weights.
    explicit ShardsInMemory(std::vector<std::shared_ptr<DataLoss>> losses);

    const std::vector<std::int64_t>& shard_ptr() const override { return shard_ptr_; }
    std::shared_ptr<DataLoss> open(std::int64_t i) override { return losses_[i]; }
    bool in_memory() const override { return true; }

  private:
    std::vector<std::shared_ptr<DataLoss>> losses_;
    std::vector<std::int64_t> shard_ptr_;
};

// Adds up values and vectors [D] of n shards in the order above, one after the other, with log2(n) + 1
// partial sums in memory.
class TreeSum {
  public:
    TreeSum(std::int64_t n_shards, std::int64_t n_weights, int n_threads)
        : n_shards_(n_shards), n_weights_(n_weights), n_threads_(n_threads) {}

    // Begins anew. The sum of all is in out [D] then, which has those of the first shards until then.
    void begin(double* out);
    // The vector [D] of what comes next, to be filled.
    double* next();
    // Adds it, with its value.
    void add(double value);
    // The sum of the values of all n, which were added.
    double value() const { return partials_[0].value; }

  private:
    struct Partial {
        double value;
        double* vector;
    };
    void merge_last_two();

    const std::int64_t n_shards_, n_weights_;
    const int n_threads_;
    std::int64_t n_added_ = 0;
    std::vector<Partial> partials_;        // of consecutive nodes of the tree
    std::vector<Buffer<double>> vectors_;  // of all partial sums but the first, and of what comes next
    double* out_ = nullptr;
};

class ShardedLoss final : public DataLoss {
  public:
    ShardedLoss(std::unique_ptr<ShardLosses> shards, std::int64_t n_weights, int n_threads);
    ~ShardedLoss() override;

    double evaluate(const double* w, double* gradient) override;
    void hessian_vector(const double* w, const double* v, double* out) override;
    bool refine() override;
    const SequenceSource& sequences() override;
    std::unique_ptr<Mistakes> mistakes(const double* w) override;
    std::vector<std::int64_t> shard_ptr() const override { return shards_->shard_ptr(); }

    // Of sequence n.
    std::int64_t shard_of(std::int64_t n) const;
    std::int64_t first_sequence(std::int64_t shard) const { return shards_->shard_ptr()[shard]; }
    std::int64_t n_shards() const { return static_cast<std::int64_t>(shards_->shard_ptr().size()) - 1; }
    bool in_memory() const { return shards_->in_memory(); }
    // The loss of shard i, as exact as is asked for. Any thread may ask.
    std::shared_ptr<DataLoss> open(std::int64_t i);
    void settle(std::int64_t i);
    bool keeps(std::int64_t i);
    // No shard is asked for soon.
    void close_all();
    // Whether single sequences may be visited in any order: no shard is made anew when it is opened again.
    bool takes_any_order() { return open(0) && keeps(0); }

  private:
    double add_shards(const std::function<double(DataLoss&, double*)>& answer, double* out);

    std::unique_ptr<ShardLosses> shards_;
    std::unique_ptr<SequenceSource> sequences_;  // from the first question about single sequences on
    ForkMutex mutex_;                            // of shards_
    std::shared_ptr<DataLoss> open_;             // the shard that was opened last, where they are not kept
    std::int64_t open_shard_ = -1;
    bool refined_ = false;
    TreeSum sum_;
};

}  // namespace crfkit
