// The sequences of a design with lattices as parts (training/parts.hpp).
#pragma once

#include <memory>
#include <vector>

#include "data/annotation.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"
#include "lattice/data.hpp"
#include "training/parts.hpp"

namespace crfkit {

// A node has a factor of its own; arcs of the same two labels share one, at each position where features of
// transitions tell them apart. All must outlive it.
class LatticeParts final : public PartSource {
  public:
    // gold: null where all label sequences are allowed.
    LatticeParts(const Layout& layout, const Design& design, const Annotation* gold, const LatticeData& data)
        : PartSource(layout.n_weights(),
                     gold ? gold->weights
                          : std::vector<double>(static_cast<std::size_t>(design.n_sequences()), 1.0)),
          layout_(layout),
          design_(design),
          gold_(gold),
          data_(data) {}

    std::unique_ptr<PartReader> open() const override;

  private:
    class Reader;

    const Layout& layout_;
    const Design& design_;
    const Annotation* gold_;
    const LatticeData& data_;
};

}  // namespace crfkit
