#include "formats/crfsuite_part.hpp"

#include <array>
#include <optional>
#include <string_view>

namespace crfkit {

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
