// A data set of word lattices as parts (training/parts.hpp).
//
// Level t holds boundary t of a sequence: inner nodes E(t, c), "an arc of label c ends here", and a node for
// each arc that begins here, which it is entered by:
//
//   arcs that end at t → E(t, c) → arcs that begin at t        silent; then scored by the transition
//
// so that a boundary costs (labels that end) · (arcs that begin), however many arcs have one label.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "data/arc_model.hpp"
#include "segments/word_lattice.hpp"
#include "training/parts.hpp"

namespace crfkit {

class WordLatticeParts final : public PartSource {
  public:
    // The weights of transitions lie behind those of the layout and end at or before n_weights, D. Without an
    // annotation all paths are allowed. A node has the number of its arc in its sequence as its label.
    WordLatticeParts(std::shared_ptr<const WordLattices> data, std::optional<Annotation> gold,
                     std::int64_t n_weights);

    std::unique_ptr<PartReader> open() const override;

  private:
    class Reader;

    std::shared_ptr<const WordLattices> data_;
    std::optional<Annotation> gold_;
    ArcModel model_;
};

}  // namespace crfkit
