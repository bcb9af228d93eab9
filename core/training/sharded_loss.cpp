#include "training/sharded_loss.hpp"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/interruption.hpp"
#include "base/threads.hpp"

namespace crfkit {
namespace {

// The single sequences of all shards. Slots are those of every shard: they follow from the weights alone.
class ShardedSequences final : public SequenceSource {
  public:
    explicit ShardedSequences(ShardedLoss& loss) : loss_(loss), first_(loss.open(0)) {
        n_slots_ = first_->sequences().n_slots();
        if (loss.in_memory())
            for (std::int64_t i = 1; i < loss.n_shards(); ++i) of(i, *loss.open(i));
    }

    std::int64_t n_sequences() const override { return loss_.n_sequences; }
    std::int64_t n_slots() const override { return n_slots_; }
    void pack(const double* w, double other, double* slots) const override {
        first_->sequences().pack(w, other, slots);
    }
    void unpack(const double* slots, double* w) const override { first_->sequences().unpack(slots, w); }
    void each_slot_range(const std::function<void(SlotRange)>& function) const override {
        first_->sequences().each_slot_range(function);
    }
    std::unique_ptr<SequenceLoss> open() const override;

    // The sequences of one shard, made when they are asked for first. Any thread may ask.
    const SequenceSource& of(std::int64_t i, DataLoss& shard) const {
        const std::lock_guard one_at_a_time(mutex_);
        const SequenceSource& found = shard.sequences();
        loss_.settle(i);
        if (found.n_slots() != n_slots_)
            throw std::invalid_argument(
                "shards have sequences of different kinds: " + std::to_string(found.n_slots()) + " and " +
                std::to_string(n_slots_) + " slots");
        return found;
    }
    ShardedLoss& loss() const { return loss_; }

  private:
    ShardedLoss& loss_;
    std::shared_ptr<DataLoss> first_;
    std::int64_t n_slots_;
    mutable ForkMutex mutex_;
};

constexpr std::int64_t kLoads = 8192;  // sequences after which shards that are not in memory are closed

// One sequence after the other. Shards that are kept stay open, of others the last one alone. Where
// sequences are visited in any order, each touches a few pages of its shard: they stay in memory for a while.
class ShardedSequence final : public SequenceLoss {
  public:
    explicit ShardedSequence(const ShardedSequences& source)
        : source_(source), open_(static_cast<std::size_t>(source.loss().n_shards())) {}

    void load(std::int64_t n) override {
        ShardedLoss& loss = source_.loss();
        const std::int64_t shard = loss.shard_of(n);
        if (shard != shard_) {
            Open& open = open_[shard];
            if (!open.sequence) {
                shard_ = -1;
                if (alone_ >= 0) open_[alone_] = {};
                alone_ = -1;
                open.loss = loss.open(shard);
                open.sequence = source_.of(shard, *open.loss).open();
                if (!loss.keeps(shard)) alone_ = shard;
            }
            current_ = open.sequence.get();
            shard_ = shard;
        }
        if (!loss.in_memory() && ++n_loads_ % kLoads == 0) loss.close_all();
        current_->load(n - loss.first_sequence(shard));
        clear();
        for (const SlotRange range : current_->ranges()) touch(range.begin, range.end);
    }
    std::int64_t n_residuals() const override { return current_->n_residuals(); }
    double differentiate(const double* weights, double* residuals) override {
        return current_->differentiate(weights, residuals);
    }
    void gradient(const double* residuals, double* gradient) override {
        current_->gradient(residuals, gradient);
    }

  private:
    struct Open {
        std::shared_ptr<DataLoss> loss;
        std::unique_ptr<SequenceLoss> sequence;
    };
    const ShardedSequences& source_;
    std::vector<Open> open_;  // [shards]
    std::int64_t shard_ = -1;
    std::int64_t alone_ = -1;  // the one that is open and not kept
    std::int64_t n_loads_ = 0;
    SequenceLoss* current_ = nullptr;
};

std::unique_ptr<SequenceLoss> ShardedSequences::open() const {
    return std::make_unique<ShardedSequence>(*this);
}

// The mistakes of one shard at a time; those of the next one read all weights anew.
class ShardedMistakes final : public Mistakes {
  public:
    ShardedMistakes(ShardedLoss& loss, const double* w) : loss_(loss), w_(w) {}

    std::int64_t n_sequences() const override { return loss_.n_sequences; }
    double weight(std::int64_t n) const override { return go_to(n).weight(n - first_); }
    void read_weights() override {
        if (current_) current_->read_weights();
    }
    void expect(std::int64_t n) const override {
        if (shard_ >= 0 && loss_.shard_of(n) == shard_) current_->expect(n - first_);
    }
    std::int64_t find(std::int64_t n, Difference& difference) override {
        return go_to(n).find(n - first_, difference);
    }
    void read_changes(const Difference& difference) override { current_->read_changes(difference); }

  private:
    Mistakes& go_to(std::int64_t n) const {
        const std::int64_t shard = loss_.shard_of(n);
        if (shard == shard_) return *current_;
        shard_ = -1;
        current_.reset();
        open_.reset();
        open_ = loss_.open(shard);
        current_ = open_->mistakes(w_);
        current_->read_weights();
        shard_ = shard;
        first_ = loss_.first_sequence(shard);
        return *current_;
    }

    ShardedLoss& loss_;
    const double* w_;
    mutable std::int64_t shard_ = -1, first_ = 0;
    mutable std::shared_ptr<DataLoss> open_;
    mutable std::unique_ptr<Mistakes> current_;
};

}  // namespace

ShardsInMemory::ShardsInMemory(std::vector<std::shared_ptr<DataLoss>> losses)
    : losses_(std::move(losses)), shard_ptr_{0} {
    if (losses_.empty()) throw std::invalid_argument("there are no shards, expected at least one");
    for (const auto& loss : losses_) {
        if (loss->n_weights != losses_[0]->n_weights)
            throw std::invalid_argument("shards have losses of " + std::to_string(loss->n_weights) + " and " +
                                        std::to_string(losses_[0]->n_weights) + " weights");
        shard_ptr_.push_back(shard_ptr_.back() + loss->n_sequences);
    }
}

void TreeSum::begin(double* out) {
    partials_.clear();
    n_added_ = 0;
    out_ = out;
}

double* TreeSum::next() {
    if (partials_.empty()) return out_;
    if (vectors_.size() < partials_.size()) vectors_.emplace_back(n_weights_);
    return vectors_[partials_.size() - 1].data();
}

// A node of the tree is the sum of its two halves as soon as its last shard is there.
void TreeSum::add(double value) {
    partials_.push_back({value, next()});
    const std::int64_t shard = n_added_++;
    std::int64_t begin = 0, end = n_shards_, n_complete = 0;  // nodes that end with this shard
    while (end - begin > 1) {
        const std::int64_t middle = begin + (end - begin + 1) / 2;
        const bool second_half = shard >= middle;
        n_complete = second_half ? n_complete + 1 : 0;
        (second_half ? begin : end) = middle;
    }
    for (; n_complete > 0; --n_complete) merge_last_two();
}

void TreeSum::merge_last_two() {
    const Partial last = partials_.back();
    partials_.pop_back();
    Partial& first = partials_.back();
    constexpr std::int64_t piece = 1 << 16;
    parallel_for((n_weights_ + piece - 1) / piece, n_threads_, [&](std::int64_t i, int) {
        const std::int64_t end = std::min(n_weights_, (i + 1) * piece);
        for (std::int64_t d = i * piece; d < end; ++d) first.vector[d] += last.vector[d];
    });
    first.value += last.value;
}

ShardedLoss::ShardedLoss(std::unique_ptr<ShardLosses> shards, std::int64_t weights, int threads)
    : DataLoss(weights, shards->shard_ptr().back(), threads),
      shards_(std::move(shards)),
      sum_(n_shards(), weights, threads) {}

ShardedLoss::~ShardedLoss() = default;

std::int64_t ShardedLoss::shard_of(std::int64_t n) const {
    const auto& ptr = shards_->shard_ptr();
    return std::upper_bound(ptr.begin(), ptr.end() - 1, n) - ptr.begin() - 1;
}

std::shared_ptr<DataLoss> ShardedLoss::open(std::int64_t i) {
    const std::lock_guard one_at_a_time(mutex_);
    if (shards_->in_memory()) return shards_->open(i);
    if (open_shard_ != i) {
        if (open_shard_ >= 0) shards_->close(open_shard_);
        open_shard_ = -1;
        open_.reset();
        open_ = shards_->open(i);
        if (refined_) open_->refine();
        open_shard_ = i;
    }
    return open_;
}

void ShardedLoss::settle(std::int64_t i) {
    const std::lock_guard one_at_a_time(mutex_);
    shards_->settle(i);
}

bool ShardedLoss::keeps(std::int64_t i) {
    const std::lock_guard one_at_a_time(mutex_);
    return shards_->keeps(i);
}

void ShardedLoss::close_all() {
    const std::lock_guard one_at_a_time(mutex_);
    for (std::int64_t i = 0; i < n_shards(); ++i) shards_->close(i);
}

double ShardedLoss::add_shards(const std::function<double(DataLoss&, double*)>& answer, double* out) {
    const std::int64_t n = n_shards();
    if (n == 1) return answer(*open(0), out);
    sum_.begin(out);
    auto before = in_memory() ? open(n - 1) : nullptr;  // which has the memory since the last question
    for (std::int64_t i = 0; i < n; ++i) {
        check_interruption();
        const auto shard = open(i);
        shards_->expect((i + 1) % n);
        double* const vector = sum_.next();
        if (before) before->hand_over(*shard, i > 0);
        sum_.add(answer(*shard, vector));
        settle(i);
        if (in_memory()) before = shard;
    }
    return sum_.value();
}

double ShardedLoss::evaluate(const double* w, double* gradient) {
    return add_shards([&](DataLoss& shard, double* out) { return shard.evaluate(w, out); }, gradient);
}

void ShardedLoss::hessian_vector(const double* w, const double* v, double* out) {
    add_shards(
        [&](DataLoss& shard, double* vector) {
            shard.hessian_vector(w, v, vector);
            return 0.0;
        },
        out);
}

bool ShardedLoss::refine() {
    bool change = false;
    if (in_memory()) {
        for (std::int64_t i = 0; i < n_shards(); ++i) change = open(i)->refine() || change;
    } else if (!refined_) {
        change = open(0)->refine();  // all others are refined when they are opened
        refined_ = true;
    }
    return change;
}

const SequenceSource& ShardedLoss::sequences() {
    if (!sequences_) sequences_ = std::make_unique<ShardedSequences>(*this);
    return *sequences_;
}

std::unique_ptr<Mistakes> ShardedLoss::mistakes(const double* w) {
    return std::make_unique<ShardedMistakes>(*this, w);
}

}  // namespace crfkit
