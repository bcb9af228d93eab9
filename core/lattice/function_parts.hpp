// Feature functions on a data set, slice by slice, and each of its sequences as parts.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/annotation.hpp"
#include "lattice/function_lattices.hpp"
#include "lattice/part_features.hpp"
#include "training/parts.hpp"

namespace crfkit {

// Sequences first..last−1 of a data set, and what is active on their parts.
struct FunctionSlice {
    std::int64_t first, last;
    std::shared_ptr<const Lattices> lattices;
    std::vector<ActiveFeatures> active;
};

// Where slices come from: they follow each other, and are cut by the data alone.
class FunctionSlices {
  public:
    virtual ~FunctionSlices() = default;
    virtual std::int64_t n_slices() const = 0;
    // A slice lives as long as somebody holds it.
    virtual std::shared_ptr<const FunctionSlice> slice(std::int64_t i) const = 0;
    // A slice that has sequence n, made for it alone where its own slice does not fit into memory.
    virtual std::shared_ptr<const FunctionSlice> slice_of(std::int64_t n) const = 0;
};

// One sequence after the other, from any source of slices.
class FunctionReader {
  public:
    // Slices must outlive it.
    FunctionReader(const FunctionSlices& slices, std::int64_t n_weights)
        : slices_(slices), n_weights_(n_weights) {}

    // Goes to sequence n; `lattice` is of it, empty where the sequence is. Throws std::invalid_argument where
    // the slice does not fit.
    void load(std::int64_t n);
    // Adds the features of node j, of arc e of the lattice to the newest factor; the arcs out of the start
    // and into the end belong to the nodes.
    void add_node(std::int64_t j, Parts& parts) const;
    void add_arc(std::int64_t e, Parts& parts) const;

    Lattice lattice;

  private:
    void add(bool on_arcs, std::int64_t part, Parts& parts) const;

    const FunctionSlices& slices_;
    const std::int64_t n_weights_;
    std::shared_ptr<const FunctionSlice> slice_;
    std::int64_t first_node_ = 0, first_arc_ = 0, n_starts_ = 0;
    std::vector<std::vector<std::int64_t>> boundary_;  // [nodes] the boundary arcs of each
};

// Nodes and arcs are those of lattices, each with a factor of its own.
class FunctionParts final : public PartSource {
  public:
    // gold: of the whole data set, the positions of whose sequences begin at sequence_ptr [N + 1]. All must
    // outlive it.
    FunctionParts(const FunctionSlices& slices, const std::vector<std::int64_t>& sequence_ptr,
                  const Annotation& gold, std::int64_t n_weights)
        : PartSource(n_weights, gold.weights), slices_(slices), sequence_ptr_(sequence_ptr), gold_(gold) {}

    std::unique_ptr<PartReader> open() const override;

  private:
    class Reader;

    const FunctionSlices& slices_;
    const std::vector<std::int64_t>& sequence_ptr_;
    const Annotation& gold_;
};

}  // namespace crfkit
