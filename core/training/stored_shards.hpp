// Shards that are not all in memory: the loss of a shard is made when it is asked for. What is large of it
// goes to a scratch file, is read from there each time it is used, and leaves memory afterwards.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/scratch_memory.hpp"
#include "training/sharded_loss.hpp"

namespace crfkit {

class StoredShards final : public ShardLosses {
  public:
    using Make = std::function<std::shared_ptr<DataLoss>(std::int64_t)>;

    // make(i) makes the loss of shard i; folder: where the scratch file is, empty: there is none, and losses
    // are made anew each time.
    StoredShards(std::vector<std::int64_t> shard_ptr, Make make, const std::string& folder)
        : shard_ptr_(std::move(shard_ptr)),
          make_(std::move(make)),
          file_(folder.empty() ? nullptr : std::make_shared<ScratchFile>(folder)),
          kept_(shard_ptr_.size() - 1) {}

    const std::vector<std::int64_t>& shard_ptr() const override { return shard_ptr_; }
    bool in_memory() const override { return false; }
    bool keeps(std::int64_t i) const override { return kept_[i] != nullptr; }
    std::shared_ptr<DataLoss> open(std::int64_t i) override {
        if (!kept_[i]) {
            auto fresh = std::make_shared<Kept>();
            fresh->loss = make_(i);
            if (file_) {
                fresh->memory = std::make_unique<ScratchMemory>(file_);
                if (fresh->loss->move_to(*fresh->memory)) kept_[i] = fresh;
            }
            return {fresh, fresh->loss.get()};
        }
        return {kept_[i], kept_[i]->loss.get()};
    }
    void expect(std::int64_t i) override {
        if (kept_[i]) kept_[i]->memory->expect();
    }
    void settle(std::int64_t i) override {
        if (kept_[i] && !kept_[i]->loss->move_to(*kept_[i]->memory)) kept_[i].reset();  // a full disk
    }
    void close(std::int64_t i) override {
        if (!kept_[i]) return;
        kept_[i]->loss->release();
        kept_[i]->memory->drop();
    }

  private:
    struct Kept {
        std::unique_ptr<ScratchMemory> memory;  // which outlives the loss
        std::shared_ptr<DataLoss> loss;
    };
    const std::vector<std::int64_t> shard_ptr_;
    const Make make_;
    const std::shared_ptr<ScratchFile> file_;
    std::vector<std::shared_ptr<Kept>> kept_;  // [shards]
};

}  // namespace crfkit
