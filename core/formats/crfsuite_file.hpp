// CRFsuite's model files ("lCRF"): weights of (attribute, label) pairs and of arcs between labels.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/layout.hpp"
#include "formats/string_table.hpp"
#include "text/named_positions.hpp"
#include "text/vocabulary.hpp"

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

// FEAT, LFRF or AFRF: n items inside the file.
struct CrfsuiteChunk {
    const char* items;
    std::uint32_t n;
};

// A file whose labels and transitions are read at once, and whose attributes when they are asked for.
// Whatever the bytes, it takes memory in proportion to their number; all methods throw std::invalid_argument
// where what they read is damaged.
class CrfsuiteFile {
  public:
    // The file must outlive it. A file of a training run without data has no labels.
    CrfsuiteFile(std::string_view file, std::int64_t most_labels, double largest_weight);

    const StringTableView& attributes() const { return attributes_; }
    std::uint32_t n_features() const { return features_.n; }
    // Appends the labels, which ascend, and the weights of an attribute.
    void read_attribute(std::uint32_t attribute, std::vector<std::int32_t>& labels,
                        std::vector<double>& weights) const;
    // The whole model. That no attribute is there twice is left to whoever makes a vocabulary of the names.
    CrfsuiteModel read() const;

    std::vector<std::string> labels;                  // [L]
    std::vector<std::int32_t> arc_before, arc_after;  // [A]
    std::vector<double> arc_weights;                  // [A]

  private:
    struct Head {
        std::uint32_t n_labels, n_attributes, features, labels, attributes, label_lists, attribute_lists;
    };
    static Head read_head(std::string_view file);
    CrfsuiteFile(std::string_view file, const Head& head, std::int64_t most_labels, double largest_weight);

    std::string_view file_;
    std::uint32_t n_labels_;
    double largest_weight_;
    StringTableView attributes_;
    CrfsuiteChunk features_, label_lists_, attribute_lists_;
};

// The part of a model that some positions need, as a model of its own. Scores, and with them all answers, are
// those of the whole model. The first sentences after a file is opened are tagged with it, so that opening
// costs no more than they do.
struct CrfsuitePart {
    std::shared_ptr<const Layout> layout;
    std::vector<double> weights;  // [D]
    FeatureArrays features;       // of the positions; each occurrence of an attribute is a feature
};

// Throws std::invalid_argument where the file is damaged, or has no labels.
CrfsuitePart part_of(const CrfsuiteFile& file, const NamedPositions& positions);

// The file of the weights w[D] of a layout that has state pairs and arcs between labels alone. Weights that
// are 0 are left out, and attributes without any.
std::string write_crfsuite(const Layout& layout, const std::vector<std::string>& labels,
                           const Vocabulary& attributes, const double* w);

// The file of a model without labels: what a training run without data gives.
std::string write_empty_crfsuite();

}  // namespace crfkit
