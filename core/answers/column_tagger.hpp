// Column files tagged chunk by chunk: bytes in, bytes out. Chunks are independent of each other, so that each
// thread works on its own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "answers/chain_potentials.hpp"
#include "text/column_reader.hpp"
#include "text/extractor.hpp"

namespace crfkit {

struct TaggedChunk {
    std::string bytes;
    std::int64_t n_sequences = 0;
};

// A trained chain whose features are those of a template; all that is given must outlive it.
struct ColumnTagger {
    const ChainPotentials& potentials;
    std::shared_ptr<const Layout> layout;
    Extractor& extractor;
    Vocabulary& states;
    Vocabulary& arcs;
    std::vector<std::string> labels;  // [L] their names

    // The chunk with the best labels as one more column: comments first, then the rows, and a blank line
    // after each sequence. Column k that the template counts is column inputs[k] of the file. Throws
    // ColumnError as read_block does, and std::invalid_argument where a sequence has no possible labels: the
    // chunk is then as it was.
    TaggedChunk tag(ColumnChunk& chunk, const ColumnForm& form, std::span<const std::int32_t> inputs,
                    bool labels_only, const ApplyTransform& apply) const;
};

}  // namespace crfkit
