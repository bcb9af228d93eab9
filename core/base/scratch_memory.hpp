// Large arrays in a file, for data larger than memory: mapped, read from there when they are used, and
// dropped from memory afterwards. The file has no name: it is gone when the process ends, however that ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/buffer.hpp"

namespace crfkit {

class ScratchFile {
  public:
    // A new file in this folder. Throws std::runtime_error where none can be written.
    explicit ScratchFile(const std::string& folder);
    ~ScratchFile();
    ScratchFile(const ScratchFile&) = delete;
    ScratchFile& operator=(const ScratchFile&) = delete;

    std::int64_t size() const { return size_; }

  private:
    friend class ScratchMemory;
    int file_ = -1;
    std::int64_t size_ = 0;
};

// Some arrays of such a file that are used together. It must outlive the buffers that it has taken. One
// thread at a time.
class ScratchMemory {
  public:
    explicit ScratchMemory(std::shared_ptr<ScratchFile> file) : file_(std::move(file)) {}
    ~ScratchMemory();
    ScratchMemory(const ScratchMemory&) = delete;
    ScratchMemory& operator=(const ScratchMemory&) = delete;

    // The numbers of a buffer are to be stored; small ones, and those that are stored already, stay where
    // they are.
    template <class Number>
    void take(Buffer<Number>& buffer) {
        const auto n_bytes = buffer.size() * static_cast<std::int64_t>(sizeof(Number));
        if (!buffer.owns_memory() || n_bytes < kLeast) return;
        taken_.push_back({buffer.data(), n_bytes, &buffer, [](void* taken, void* memory) {
                              static_cast<Buffer<Number>*>(taken)->point_to(static_cast<Number*>(memory));
                          }});
    }
    // Writes all that was taken to the file, and lets the buffers point there. Returns false, and leaves all
    // buffers as they are, where the file cannot grow: the disk is full.
    bool store();

    // It is used soon: the system may read it.
    void expect() const;
    // It is not used soon: its pages leave the memory of this process. What is asked for is read again.
    void drop() const;

  private:
    static constexpr std::int64_t kLeast = 4096;
    struct Taken {
        const void* data;
        std::int64_t n_bytes;
        void* buffer;
        void (*point)(void* buffer, void* memory);
    };
    struct Region {
        void* memory;
        std::size_t n_bytes;
    };
    std::shared_ptr<ScratchFile> file_;
    std::vector<Taken> taken_;
    std::vector<Region> regions_;
};

}  // namespace crfkit
