// Slices of feature functions as Python hands them over.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>

#include "bindings/active_arrays.hpp"
#include "bindings/lock_release.hpp"
#include "lattice/function_parts.hpp"

namespace crfkit {

// Slices that a Python function makes when they are asked for.
class PythonSlices final : public FunctionSlices {
  public:
    PythonSlices(std::int64_t n_slices, nanobind::callable make, nanobind::callable make_of)
        : n_(n_slices), make_(std::move(make)), make_of_(std::move(make_of)) {}

    std::int64_t n_slices() const override { return n_; }
    std::shared_ptr<const FunctionSlice> slice(std::int64_t i) const override { return made(make_, i); }
    std::shared_ptr<const FunctionSlice> slice_of(std::int64_t n) const override { return made(make_of_, n); }

  private:
    // A slice, and the Python object whose arrays it looks into.
    struct Held {
        nanobind::object object;
        FunctionSlice slice;
    };
    static std::shared_ptr<const FunctionSlice> made(const nanobind::callable& make, std::int64_t i) {
        const LockTaken lock;
        auto held = std::make_unique<Held>();
        held->object = make(i);
        const auto [first, last, lattices, blocks] =
            nanobind::cast<std::tuple<std::int64_t, std::int64_t, std::shared_ptr<Lattices>, Blocks>>(
                held->object);
        held->slice = {first, last, lattices, views(blocks)};
        Held* kept = held.release();
        return {&kept->slice, [kept](const FunctionSlice*) {
                    const LockTaken lock_again;
                    delete kept;
                }};
    }

    std::int64_t n_;
    nanobind::callable make_, make_of_;
};

}  // namespace crfkit
