#include "trees/tree_parts.hpp"

namespace crfkit {

void add_keys(const ArcFeatures& features, const SecondOrderPart& part, KeyList& out) {
    if (part.kind == SecondOrderPart::Kind::grandparent)
        features.grandparent(part.other, part.head, part.dependent, out);
    else
        features.siblings(part.head, part.side, part.other, part.dependent, out);
}

}  // namespace crfkit
