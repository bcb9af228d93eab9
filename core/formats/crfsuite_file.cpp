#include "formats/crfsuite_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "text/utf8.hpp"

namespace crfkit {

namespace {

constexpr std::size_t file_head = 48, chunk_head = 12, feature_size = 20;
constexpr std::uint32_t version = 100;
enum Kind : std::uint32_t { from_attribute = 0, from_label = 1 };

double read_double(const char* bytes) {
    const std::uint64_t low = read_u32(bytes), high = read_u32(bytes + 4);
    return std::bit_cast<double>(high << 32 | low);
}

void append_double(std::string& out, double number) {
    const auto bits = std::bit_cast<std::uint64_t>(number);
    append_u32(out, static_cast<std::uint32_t>(bits));
    append_u32(out, static_cast<std::uint32_t>(bits >> 32));
}

using Chunk = CrfsuiteChunk;

Chunk read_chunk(std::string_view file, std::uint32_t offset, const char* name, std::size_t item_size) {
    if (offset > file.size() || file.size() - offset < chunk_head || file.substr(offset, 4) != name)
        throw std::invalid_argument("the chunk " + std::string(name) + " is not where the file says");
    const std::uint32_t n = read_u32(file.data() + offset + 8);
    if (n > (file.size() - offset - chunk_head) / item_size)
        throw std::invalid_argument("the chunk " + std::string(name) + " says it has " + std::to_string(n) +
                                    " items, more than the file");
    return {file.data() + offset + chunk_head, n};
}

// Follows the lists of features of labels and attributes.
class FeatureReader {
  public:
    FeatureReader(std::string_view file, const Chunk& features, std::uint32_t n_labels, double largest_weight)
        : file_(file), features_(features), n_labels_(n_labels), largest_weight_(largest_weight) {}

    // Appends the label and the weight of each feature of `source`, whose list is number `source` of `lists`;
    // labels ascend.
    void read(const Chunk& lists, std::uint32_t source, Kind kind, std::vector<std::int32_t>& labels,
              std::vector<double>& weights) {
        const std::uint32_t at = read_u32(lists.items + std::size_t{4} * source);
        if (at == 0) return;
        if (at > file_.size() || file_.size() - at < 4) complain(kind, source, "lies outside the file");
        const std::uint32_t n = read_u32(file_.data() + at);
        if (n > (file_.size() - at - 4) / 4) complain(kind, source, "lies outside the file");
        const std::size_t first = labels.size();
        bool ascending = true;
        for (std::uint32_t i = 0; i < n; ++i) {
            const std::uint32_t id = read_u32(file_.data() + at + 4 + std::size_t{4} * i);
            if (id >= features_.n) complain(kind, source, "has a feature that does not exist");
            const char* feature = features_.items + feature_size * id;
            // A feature has one source, so all lists together are no longer than the file.
            if (read_u32(feature) != kind || read_u32(feature + 4) != source)
                complain(kind, source, "has a feature of another");
            const std::uint32_t label = read_u32(feature + 8);
            if (label >= n_labels_) complain(kind, source, "has a feature of a label that does not exist");
            const double weight = read_double(feature + 12);
            if (!(std::abs(weight) <= largest_weight_))
                complain(kind, source, "has a weight that is too large or not a number");
            ascending &= i == 0 || labels.back() < static_cast<std::int32_t>(label);
            labels.push_back(static_cast<std::int32_t>(label));
            weights.push_back(weight);
        }
        if (!ascending) sort(kind, source, first, labels, weights);
    }

  private:
    void sort(Kind kind, std::uint32_t source, std::size_t first, std::vector<std::int32_t>& labels,
              std::vector<double>& weights) {
        std::vector<std::pair<std::int32_t, double>> pairs;
        for (std::size_t i = first; i < labels.size(); ++i) pairs.emplace_back(labels[i], weights[i]);
        std::sort(pairs.begin(), pairs.end());
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            if (i && pairs[i].first == pairs[i - 1].first)
                complain(kind, source, "has two weights for one label");
            std::tie(labels[first + i], weights[first + i]) = pairs[i];
        }
    }

    [[noreturn]] static void complain(Kind kind, std::uint32_t source, const char* words) {
        throw std::invalid_argument("the list of features of " +
                                    std::string(kind == from_label ? "label " : "attribute ") +
                                    std::to_string(source) + " " + words);
    }

    std::string_view file_;
    Chunk features_;
    std::uint32_t n_labels_;
    double largest_weight_;
};

}  // namespace

CrfsuiteFile::Head CrfsuiteFile::read_head(std::string_view file) {
    if (file.size() < file_head || file.substr(0, 4) != "lCRF")
        throw std::invalid_argument("it does not begin with lCRF and a header of 48 bytes");
    if (file.substr(8, 4) != "FOMC" || read_u32(file.data() + 12) != version)
        throw std::invalid_argument("it is not a first-order model of version 100");
    if (read_u32(file.data() + 4) > file.size())
        throw std::invalid_argument("it should have " + std::to_string(read_u32(file.data() + 4)) +
                                    " bytes but has " + std::to_string(file.size()));
    const auto number = [&](int i) { return read_u32(file.data() + 4 * i); };
    return {number(5), number(6), number(7), number(8), number(9), number(10), number(11)};
}

CrfsuiteFile::CrfsuiteFile(std::string_view file, std::int64_t most_labels, double largest_weight)
    : CrfsuiteFile(file, read_head(file), most_labels, largest_weight) {}

CrfsuiteFile::CrfsuiteFile(std::string_view file, const Head& head, std::int64_t most_labels,
                           double largest_weight)
    : file_(file),
      n_labels_(head.n_labels),
      largest_weight_(largest_weight),
      attributes_(file, head.attributes, head.n_attributes, "attributes"),
      features_(read_chunk(file, head.features, "FEAT", feature_size)),
      label_lists_(read_chunk(file, head.label_lists, "LFRF", 4)),
      attribute_lists_(read_chunk(file, head.attribute_lists, "AFRF", 4)) {
    if (n_labels_ > most_labels)
        throw std::invalid_argument("it has " + std::to_string(n_labels_) + " labels, expected at most " +
                                    std::to_string(most_labels));
    if (label_lists_.n < n_labels_ || attribute_lists_.n < attributes_.size())
        throw std::invalid_argument("it has fewer lists of features than labels or attributes");
    const StringTable names = StringTableView(file, head.labels, n_labels_, "labels").read();
    auto begin = names.bytes.begin();
    for (const std::uint32_t length : names.lengths) {
        labels.emplace_back(begin, begin + length);
        begin += length;
    }
    FeatureReader reader(file_, features_, n_labels_, largest_weight_);
    for (std::uint32_t before = 0; before < n_labels_; ++before) {
        reader.read(label_lists_, before, from_label, arc_after, arc_weights);
        arc_before.resize(arc_after.size(), static_cast<std::int32_t>(before));
    }
}

void CrfsuiteFile::read_attribute(std::uint32_t attribute, std::vector<std::int32_t>& to_labels,
                                  std::vector<double>& to_weights) const {
    FeatureReader(file_, features_, n_labels_, largest_weight_)
        .read(attribute_lists_, attribute, from_attribute, to_labels, to_weights);
}

CrfsuiteModel CrfsuiteFile::read() const {
    CrfsuiteModel model;
    StringTable names = attributes_.read();
    model.names = std::move(names.bytes);
    model.name_lengths = std::move(names.lengths);
    model.pair_ptr.reserve(attributes_.size() + 1);
    model.pair_labels.reserve(features_.n);
    model.weights.reserve(features_.n);
    for (std::uint32_t attribute = 0; attribute < attributes_.size(); ++attribute) {
        read_attribute(attribute, model.pair_labels, model.weights);
        model.pair_ptr.push_back(static_cast<std::int64_t>(model.pair_labels.size()));
    }
    model.labels = labels;
    model.arc_before = arc_before;
    model.arc_after = arc_after;
    model.weights.insert(model.weights.end(), arc_weights.begin(), arc_weights.end());
    return model;
}

namespace {

// Collects features, and the numbers of those of each source.
class FeatureLists {
  public:
    void add(Kind kind, std::uint32_t source, std::int32_t label, double weight) {
        for (const std::uint32_t number : {std::uint32_t{kind}, source, static_cast<std::uint32_t>(label)})
            append_u32(features_, number);
        append_double(features_, weight);
        lists_[kind].resize(std::max<std::size_t>(lists_[kind].size(), source + 1));
        lists_[kind][source].push_back(n_++);
    }
    void append_features(std::string& file) const {
        append_head(file, "FEAT", chunk_head + features_.size(), n_);
        file += features_;
    }
    // The lists of n sources, which may be empty, and `more` that do not exist.
    void append_lists(std::string& file, const char* name, Kind kind, std::size_t n, std::size_t more) const {
        while (file.size() % 4) file.push_back('\0');
        std::string places, lists;
        const std::size_t first = file.size() + chunk_head + 4 * (n + more);
        for (std::size_t source = 0; source < n; ++source) {
            append_u32(places, static_cast<std::uint32_t>(first + lists.size()));
            const std::size_t size = source < lists_[kind].size() ? lists_[kind][source].size() : 0;
            append_u32(lists, static_cast<std::uint32_t>(size));
            for (std::size_t i = 0; i < size; ++i) append_u32(lists, lists_[kind][source][i]);
        }
        places.append(4 * more, '\0');
        append_head(file, name, chunk_head + places.size() + lists.size(), n + more);
        file += places + lists;
    }

  private:
    static void append_head(std::string& file, const char* name, std::size_t size, std::size_t n) {
        file += name;
        append_u32(file, static_cast<std::uint32_t>(size));
        append_u32(file, static_cast<std::uint32_t>(n));
    }

    std::string features_;
    std::uint32_t n_ = 0;
    std::vector<std::vector<std::uint32_t>> lists_[2];
};

// The file of these features.
std::string assembled(const FeatureLists& features, const std::vector<std::string>& labels,
                      const std::vector<std::string_view>& names) {
    std::string file(file_head, '\0'), head = "lCRF";
    std::vector<std::uint32_t> places;
    const auto begins = [&] { places.push_back(static_cast<std::uint32_t>(file.size())); };
    begins();
    features.append_features(file);
    begins();
    append_string_table(file, std::vector<std::string_view>(labels.begin(), labels.end()));
    begins();
    append_string_table(file, names);
    while (file.size() % 4) file.push_back('\0');
    begins();
    features.append_lists(file, "LFRF", from_label, labels.size(), 2);  // start and end
    begins();
    features.append_lists(file, "AFRF", from_attribute, names.size(), 0);
    if (file.size() > std::numeric_limits<std::uint32_t>::max())
        throw std::invalid_argument("the model takes " + std::to_string(file.size()) +
                                    " bytes, and a file of CRFsuite at most 4,294,967,295");
    append_u32(head, static_cast<std::uint32_t>(file.size()));
    head += "FOMC";
    for (const std::size_t number : {std::size_t{version}, std::size_t{0}, labels.size(), names.size()})
        append_u32(head, static_cast<std::uint32_t>(number));
    for (const std::uint32_t place : places) append_u32(head, place);
    return file.replace(0, file_head, head);
}

}  // namespace

std::string write_crfsuite(const Layout& layout, const std::vector<std::string>& labels,
                           const Vocabulary& attributes, const double* w) {
    FeatureLists features;
    std::vector<std::string_view> names;
    for (std::int32_t f = 0; f < attributes.size(); ++f) {
        const auto id = static_cast<std::uint32_t>(names.size());
        bool some = false;
        for (std::int64_t p = layout.pair_ptr[f]; p < layout.pair_ptr[f + 1]; ++p) {
            if (w[p] == 0) continue;
            features.add(from_attribute, id, layout.pair_labels[p], w[p]);
            some = true;
        }
        if (some) names.push_back(attributes.name(f));
    }
    const double* arcs = w + layout.arcs_begin();
    for (std::size_t a = 0; a < layout.arc_before.size(); ++a)
        if (arcs[a] != 0)
            features.add(from_label, static_cast<std::uint32_t>(layout.arc_before[a]), layout.arc_after[a],
                         arcs[a]);

    return assembled(features, labels, names);
}

std::string write_empty_crfsuite() { return assembled({}, {}, {}); }

CrfsuitePart part_of(const CrfsuiteFile& file, const NamedPositions& positions) {
    std::vector<std::int64_t> pair_ptr{0};
    std::vector<std::int32_t> pair_labels;
    CrfsuitePart part;
    part.features = positions.look_up_each([&](std::string_view name) {
        const std::optional<std::uint32_t> attribute = file.attributes().find(name);
        if (!attribute) return Vocabulary::absent;
        file.read_attribute(*attribute, pair_labels, part.weights);
        pair_ptr.push_back(static_cast<std::int64_t>(pair_labels.size()));
        return static_cast<std::int32_t>(pair_ptr.size() - 2);
    });
    part.weights.insert(part.weights.end(), file.arc_weights.begin(), file.arc_weights.end());
    constexpr std::array<std::int64_t, 1> no_triples{0};
    part.layout = std::make_shared<const Layout>(
        static_cast<std::int32_t>(file.labels.size()), pair_ptr, pair_labels, std::span<const std::int64_t>{},
        file.arc_before, file.arc_after, no_triples, std::span<const std::int32_t>{});
    return part;
}

}  // namespace crfkit
