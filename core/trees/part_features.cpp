// Features of siblings and of grandparents (Carreras 2007; Koo and Collins 2010; Bohnet 2010).
#include <algorithm>

#include "trees/arc_features.hpp"
#include "trees/key_writer.hpp"

namespace crfkit {
namespace {

// 0, 1, 2: how many there are, 2 for more.
Key few(std::int64_t count) { return static_cast<Key>(std::min<std::int64_t>(count, 2)); }

}  // namespace

void ArcFeatures::siblings(std::int64_t head, Side side, std::int64_t sibling, std::int64_t dependent,
                           KeyList& out) const {
    const Token &h = at(head), &s = sibling < 0 ? no_token() : at(sibling),
                &m = dependent < 0 ? no_token() : at(dependent);
    const bool both = sibling >= 0 && dependent >= 0;
    Writer write(side, both ? binned_distance(sibling, dependent) : 0, out);
    write.with_side(200, h.upos, s.upos, m.upos);
    write.with_side(201, h.xpos, s.xpos, m.xpos);
    write.with_side(202, h.role, s.role, m.role);
    write.with_side(203, h.lemma, s.upos, m.upos);
    write.with_side(204, h.upos, s.lemma, m.upos);
    write.with_side(205, h.upos, s.upos, m.lemma);
    write.with_side(206, h.lemma, s.role, m.role);
    if (sibling < 0 && dependent < 0) {
        const Token &before = at(head - 1), &after = at(head + 1);
        write.with_side(207, h.upos, before.upos, after.upos);
        write.with_side(208, h.xpos, h.feats);
        return;
    }
    if (!both) return;
    write.with_distance(200, h.upos, s.upos, m.upos);
    write.with_both(210, s.upos, m.upos);
    write.with_side(211, s.xpos, m.xpos);
    write.with_side(212, s.role, m.role);
    write.with_side(213, s.lemma, m.upos);
    write.with_side(214, s.upos, m.lemma);
    write.with_side(215, s.lemma, m.lemma);
    write.with_side(216, h.lemma, s.lemma, m.upos);
    write.with_side(217, h.lemma, s.upos, m.lemma);
    write.with_side(218, h.upos, s.lemma, m.lemma);
    write.with_side(219, h.upos, s.upos, s.marker, m.upos, m.marker);
    const std::int64_t low = std::min(sibling, dependent), high = std::max(sibling, dependent);
    const Key verbs = few(verbs_[high] - verbs_[low + 1]), stops = few(stops_[high] - stops_[low + 1]),
              joints = few(joints_[high] - joints_[low + 1]);
    write.with_side(220, h.upos, s.upos, m.upos, verbs, stops, joints);
    write.with_side(221, h.upos, s.upos, m.upos, at(dependent + 1).upos);
    write.with_side(222, h.upos, s.upos, m.upos, at(dependent - 1).upos);
    if (!has_clusters_) return;
    write.with_side(223, h.cluster.longer, s.cluster.longer, m.cluster.longer);
    write.with_side(224, s.cluster.whole, m.cluster.whole);
}

void ArcFeatures::grandparent(std::int64_t grandparent, std::int64_t head, std::int64_t dependent,
                              KeyList& out) const {
    const Token &g = at(grandparent), &h = at(head), &m = at(dependent);
    Writer write(side_of(head, dependent), binned_distance(head, dependent), out);
    const auto way = static_cast<Key>(side_of(grandparent, head));
    write.with_both(300, way, g.upos, h.upos, m.upos);
    write.with_side(301, way, g.xpos, h.xpos, m.xpos);
    write.with_side(302, way, g.role, h.role, m.role);
    write.with_side(303, way, g.lemma, h.upos, m.upos);
    write.with_side(304, way, g.upos, h.lemma, m.upos);
    write.with_side(305, way, g.upos, h.upos, m.lemma);
    write.with_side(306, way, g.upos, m.upos);
    write.with_side(307, way, g.role, m.role);
    write.with_side(308, way, g.lemma, m.upos);
    write.with_side(309, way, g.upos, m.lemma);
    write.with_side(310, way, g.lemma, m.lemma);
    write.with_side(311, way, g.lemma, h.lemma, m.upos);
    write.with_side(312, way, g.lemma, h.upos, m.lemma);
    write.with_side(313, way, g.upos, h.lemma, m.lemma);
    write.with_side(314, way, g.upos, h.upos, m.upos, at(dependent + 1).upos);
    write.with_side(315, way, g.upos, h.upos, m.upos, at(dependent - 1).upos);
    write.with_side(316, way, g.upos, h.upos, h.marker, m.upos);
    if (!has_clusters_) return;
    write.with_side(317, way, g.cluster.longer, h.cluster.longer, m.cluster.longer);
    write.with_side(318, way, g.cluster.whole, m.cluster.whole);
}

}  // namespace crfkit
