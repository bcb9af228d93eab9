// CRFsuite's model files ("lCRF"): weights of (attribute, label) pairs and of arcs between labels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "layout.hpp"
#include "vocabulary.hpp"

namespace crfkit {

// A file is, all numbers little-endian u32 but for the weights, which are f64:
//
//   "lCRF", size, "FOMC", version = 100, 0, L, number of attributes, and where these begin:
//   FEAT   size, n, then (kind, source, label, weight) of each: kind 0 from an attribute, 1 from a label
//   CQDB   the labels (string_table.hpp)
//   CQDB   the attributes
//   LFRF   size, n, where the list of each label begins (0: none), then lists: n, numbers of features
//   AFRF   the same for each attribute
struct CrfsuiteModel {
    std::vector<std::string> labels;
    std::vector<std::uint8_t> names;                  // of the attributes, UTF-8, one after the other
    std::vector<std::uint32_t> name_lengths;          // [F]
    std::vector<std::int64_t> pair_ptr{0};            // [F + 1], as in Layout
    std::vector<std::int32_t> pair_labels;            // [P]
    std::vector<std::int32_t> arc_before, arc_after;  // [A]
    std::vector<double> weights;                      // [P + A]
};

// Throws std::invalid_argument, in words, for anything that is not such a file; that no attribute is there
// twice is left to whoever makes a vocabulary of the names. Whatever the bytes, it takes
// memory in proportion to their number.
CrfsuiteModel read_crfsuite(std::string_view file, std::int64_t most_labels, double largest_weight);

// The file of the weights w[D] of a layout that has state pairs and arcs between labels alone. Weights that
// are 0 are left out, and attributes without any.
std::string write_crfsuite(const Layout& layout, const std::vector<std::string>& labels,
                           const Vocabulary& attributes, const double* w);

}  // namespace crfkit
