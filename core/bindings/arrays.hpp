// NumPy arrays in and out.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/lists.hpp"
#include "bindings/lock_release.hpp"

namespace crfkit {

template <class Number>
using Array = nanobind::ndarray<const Number, nanobind::numpy, nanobind::ndim<1>, nanobind::c_contig>;
template <class Number>
using Matrix = nanobind::ndarray<const Number, nanobind::numpy, nanobind::ndim<2>, nanobind::c_contig>;
// An array, or None.
template <class Number>
using Maybe = std::optional<Array<Number>>;
// An array that is changed in place.
template <class Number>
using Changed = nanobind::ndarray<Number, nanobind::numpy, nanobind::c_contig>;
template <class Number>
using AnyArray = nanobind::ndarray<const Number, nanobind::numpy, nanobind::c_contig>;

template <class Number, class... Kind>
std::span<const Number> view(const nanobind::ndarray<const Number, Kind...>& array) {
    return {array.data(), array.size()};
}

template <class Number>
std::span<const Number> view(const Maybe<Number>& array) {
    return array ? view(*array) : std::span<const Number>{};
}

// A new array that Python owns, filled by the caller.
template <class Number>
class NewArray {
  public:
    explicit NewArray(std::vector<std::size_t> shape) : shape_(std::move(shape)) {
        for (const std::size_t n : shape_) size_ *= n;
        data_ = new Number[size_ ? size_ : 1];
    }
    NewArray(const NewArray&) = delete;
    NewArray(NewArray&& other) noexcept
        : shape_(std::move(other.shape_)), size_(other.size_), data_(std::exchange(other.data_, nullptr)) {}
    ~NewArray() { delete[] data_; }
    Number* data() { return data_; }
    void fill(Number value) { std::fill_n(data_, size_, value); }
    nanobind::object take() {
        nanobind::capsule owner(data_, [](void* p) noexcept { delete[] static_cast<Number*>(p); });
        return nanobind::cast(nanobind::ndarray<nanobind::numpy, Number>(
            std::exchange(data_, nullptr), shape_.size(), shape_.data(), owner));
    }

  private:
    std::vector<std::size_t> shape_;
    std::size_t size_ = 1;
    Number* data_;
};

// A new array with these numbers, in the memory of the vector.
template <class Number>
nanobind::object new_array(std::vector<Number> values) {
    auto* owned = new std::vector<Number>(std::move(values));
    nanobind::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<Number>*>(p); });
    return nanobind::cast(
        nanobind::ndarray<nanobind::numpy, Number, nanobind::ndim<1>>(owned->data(), {owned->size()}, owner));
}

// A new array of this shape, which fill(data) fills without the interpreter's lock.
template <class Number, class Fill>
nanobind::object filled(std::vector<std::size_t> shape, const Fill& fill) {
    NewArray<Number> out(std::move(shape));
    unlocked([&] { fill(out.data()); });
    return out.take();
}

// Throws std::invalid_argument unless an array has as many numbers as expected.
inline void check_size(const char* name, std::size_t size, std::int64_t expected) {
    if (static_cast<std::int64_t>(size) != expected)
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(size) +
                                    " numbers, expected " + std::to_string(expected));
}

}  // namespace crfkit
