// Memory aligned for the widest vectors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

namespace crfkit {

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
    ~Buffer() { std::free(data_); }

    // Grows or shrinks to `size` numbers; what they hold is unspecified. Memory is only given back by clear().
    void resize(std::int64_t size) {
        if (size > capacity_) {
            std::free(data_);
            data_ = nullptr;
            capacity_ = 0;
            const std::size_t bytes = (static_cast<std::size_t>(size) * sizeof(Number) + 63) / 64 * 64;
            data_ = static_cast<Number*>(std::aligned_alloc(64, bytes));
            if (!data_) throw std::bad_alloc();
            capacity_ = size;
        }
        size_ = size;
    }
    void assign(std::int64_t size, Number value) {
        resize(size);
        std::fill(data_, data_ + size, value);
    }
    void clear() { *this = Buffer(); }

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
    void swap(Buffer& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }
    Number* data_ = nullptr;
    std::int64_t size_ = 0, capacity_ = 0;
};

}  // namespace crfkit
