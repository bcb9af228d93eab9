// Memory aligned for the widest vectors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace crfkit {

// Large tables are read here and there all the time: huge pages, where the system lends them, spare most of
// the address look-ups.
inline void* allocate(std::size_t bytes) {
    constexpr std::size_t huge = std::size_t(2) << 20;
    const std::size_t unit = bytes >= huge / 2 ? huge : 64;
    bytes = (bytes + unit - 1) / unit * unit;
    void* memory = std::aligned_alloc(unit, bytes);
    if (!memory) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    if (unit == huge) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
}

template <class Number>
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(std::int64_t size) { resize(size); }
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Buffer() { release(); }

    // Grows or shrinks to `size` numbers; what they hold is unspecified. Memory is kept when it shrinks.
    void resize(std::int64_t size) {
        if (size > capacity_) {
            release();
            data_ = static_cast<Number*>(allocate(static_cast<std::size_t>(size) * sizeof(Number)));
            capacity_ = size;
        }
        size_ = size;
    }
    void assign(std::int64_t size, Number value) {
        resize(size);
        std::fill(data_, data_ + size, value);
    }

    // Lets go of its own memory: the same numbers lie in memory of somebody else, which must outlive it. It
    // is read only from now on, until it grows.
    void point_to(Number* memory) {
        const std::int64_t size = size_;
        release();
        data_ = memory;
        size_ = size;
    }
    bool owns_memory() const { return capacity_ > 0; }

    std::int64_t size() const { return size_; }
    Number* data() { return data_; }
    const Number* data() const { return data_; }
    Number* begin() { return data_; }
    Number* end() { return data_ + size_; }
    const Number* begin() const { return data_; }
    const Number* end() const { return data_ + size_; }
    Number& operator[](std::int64_t i) { return data_[i]; }
    const Number& operator[](std::int64_t i) const { return data_[i]; }

  private:
    void release() noexcept {
        if (owns_memory()) std::free(data_);
        data_ = nullptr;
        size_ = capacity_ = 0;
    }
    void swap(Buffer& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }
    Number* data_ = nullptr;
    std::int64_t size_ = 0, capacity_ = 0;  // capacity 0: the memory, if any, is that of somebody else
};

}  // namespace crfkit
