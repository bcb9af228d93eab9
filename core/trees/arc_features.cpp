#include "trees/arc_features.hpp"

#include <algorithm>

#include "trees/key_writer.hpp"

namespace crfkit {
namespace {

constexpr Key kRoot = key_of("<root>"), kOutside = key_of("<outside>"), kNone = key_of("<none>");
constexpr Key kVerb = key_of("VERB"), kAux = key_of("AUX"), kNoun = key_of("NOUN"), kPropn = key_of("PROPN"),
              kPunct = key_of("PUNCT"), kCconj = key_of("CCONJ"), kSconj = key_of("SCONJ"),
              kAdp = key_of("ADP"), kPart = key_of("PART"), kPron = key_of("PRON");
constexpr Key kCase = key_of("Case"), kVerbForm = key_of("VerbForm"), kPronType = key_of("PronType");

// The number of a tag; those beyond the last number share it.
std::int8_t number_of(Key tag, std::vector<Key>& tags, int most) {
    const auto found = std::find(tags.begin(), tags.end(), tag);
    if (found == tags.end() && static_cast<int>(tags.size()) < most) {
        tags.push_back(tag);
        return static_cast<std::int8_t>(tags.size() - 1);
    }
    return static_cast<std::int8_t>(std::min<std::ptrdiff_t>(found - tags.begin(), most - 1));
}

// 0, 1, 2: how many there are, 2 for more.
Key few(std::int64_t count) { return static_cast<Key>(std::min<std::int64_t>(count, 2)); }

}  // namespace

void ArcFeatures::load(const Treebank& treebank, std::int64_t sentence) {
    n_ = treebank.length(sentence);
    const auto all = [](Key key) {
        return Token{{key, key, key, key, key, key, 0, 0}, kNone, key, 0, 0, {key, key, key}};
    };
    tokens_.assign(static_cast<std::size_t>(n_ + 1 + 2 * kMargin), all(kOutside));
    tokens_[kMargin] = all(kRoot);
    const Word* words = treebank.words.data() + treebank.sentence_ptr[sentence];
    morphology_ = treebank.morphology.data();
    for (std::int64_t i = 1; i <= n_; ++i) tokens_[i + kMargin] = {words[i - 1], kNone, kNone};
    has_clusters_ = !treebank.classes.empty();
    for (std::int64_t i = 1; i <= n_ && has_clusters_; ++i)
        tokens_[i + kMargin].cluster = treebank.classes[treebank.sentence_ptr[sentence] + i - 1];
    number_tags();
    find_markers();
    find_roles();
    count_between();
}

void ArcFeatures::number_tags() {
    tags_.clear();
    fine_tags_.clear();
    for (std::int64_t i = 1; i <= n_; ++i) {
        Token& token = tokens_[i + kMargin];
        token.tag = number_of(token.upos, tags_, kMostTags);
        token.fine = number_of(token.xpos, fine_tags_, kMostTags);
    }
}

// Nouns and pronouns look to their left over what belongs to a noun phrase, verbs over all but verbs and
// stops.
void ArcFeatures::find_markers() {
    for (std::int64_t i = 2; i <= n_; ++i) {
        Token& token = tokens_[i + kMargin];
        const bool verbal = token.upos == kVerb || token.upos == kAux;
        for (std::int64_t j = i - 1; j >= 1; --j) {
            const Token& left = at(j);
            if (left.upos == kAdp || left.upos == kSconj || left.upos == kCconj || left.upos == kPart) {
                token.marker = left.lemma;
                break;
            }
            if (left.upos == kVerb || left.upos == kPunct) break;
            if (!verbal && (left.upos == kPron || left.upos == kAux)) break;
            if (!verbal && (left.upos == kNoun || left.upos == kPropn) && token.upos != kNoun &&
                token.upos != kPropn)
                break;
        }
    }
}

void ArcFeatures::find_roles() {
    for (std::int64_t i = 1; i <= n_; ++i) {
        Token& token = tokens_[i + kMargin];
        token.role = token.upos;
        for (std::int64_t k = token.feats_begin; k < token.feats_end; ++k) {
            const Morph& morph = morphology_[k];
            if (morph.name == kCase || morph.name == kVerbForm || morph.name == kPronType)
                token.role = extended(token.role, morph.whole);
        }
    }
}

const ArcFeatures::Token& ArcFeatures::no_token() {
    static const Token none{
        {kNone, kNone, kNone, kNone, kNone, kNone, 0, 0}, kNone, kNone, 0, 0, {kNone, kNone, kNone}};
    return none;
}

void ArcFeatures::count_between() {
    const std::int64_t side = n_ + 1;
    tags_between_.assign(static_cast<std::size_t>(side * side), 0);
    fine_between_.assign(static_cast<std::size_t>(side * side), 0);
    for (std::int64_t i = 0; i < n_; ++i)
        for (std::int64_t j = i + 2; j <= n_; ++j) {
            tags_between_[i * side + j] = tags_between_[i * side + j - 1] | std::uint64_t(1) << at(j - 1).tag;
            fine_between_[i * side + j] = fine_between_[i * side + j - 1] | std::uint64_t(1)
                                                                                << at(j - 1).fine;
        }
    for (auto* counts : {&verbs_, &stops_, &joints_}) counts->assign(static_cast<std::size_t>(n_ + 2), 0);
    for (std::int64_t i = 1; i <= n_; ++i) {
        verbs_[i + 1] = verbs_[i] + (at(i).upos == kVerb);
        stops_[i + 1] = stops_[i] + (at(i).upos == kPunct);
        joints_[i + 1] = joints_[i] + (at(i).upos == kCconj);
    }
}

std::int64_t ArcFeatures::binned_distance(std::int64_t head, std::int64_t dependent) const {
    const std::int64_t distance = head < dependent ? dependent - head : head - dependent;
    if (distance <= 5) return distance;
    return distance <= 7 ? 6 : distance <= 10 ? 7 : distance <= 15 ? 8 : distance <= 25 ? 9 : 10;
}

void ArcFeatures::arc(std::int64_t head, std::int64_t dependent, KeyList& out,
                      std::vector<Key>* numbers) const {
    const Token &h = at(head), &m = at(dependent);
    const auto pairs =
        static_cast<std::size_t>((h.feats_end - h.feats_begin) * (m.feats_end - m.feats_begin));
    Writer write(side_of(head, dependent), binned_distance(head, dependent), out, numbers, 2 * pairs);
    single_words(h, m, write);
    word_pairs(h, m, write);
    neighbours(head, dependent, write);
    between(head, dependent, write);
    if (head) morphology(h, m, write);
    if (has_clusters_) clusters(h, m, write);
}

void ArcFeatures::coarse_arc(std::int64_t head, std::int64_t dependent, KeyList& out) const {
    const Token &h = at(head), &before_h = at(head - 1), &after_h = at(head + 1);
    const Token &m = at(dependent), &before_m = at(dependent - 1), &after_m = at(dependent + 1);
    const auto pairs =
        static_cast<std::size_t>((h.feats_end - h.feats_begin) * (m.feats_end - m.feats_begin));
    Writer write(side_of(head, dependent), binned_distance(head, dependent), out, nullptr, pairs);
    write.with_both(1, h.lemma, h.upos);
    write.with_both(4, m.lemma, m.upos);
    write.with_both(10, h.upos, m.upos);
    write.with_both(11, h.xpos, m.xpos);
    write.with_both(12, h.lemma, m.xpos);
    write.with_both(13, h.xpos, m.lemma);
    write.with_both(14, h.lemma, m.lemma);
    write.with_both(22, m.marker, m.upos, h.xpos);
    write.with_side(23, m.marker, m.upos, h.lemma);
    write.with_side(30, h.xpos, after_h.xpos, before_m.xpos, m.xpos);
    write.with_side(31, before_h.xpos, h.xpos, before_m.xpos, m.xpos);
    write.with_side(32, h.xpos, after_h.xpos, m.xpos, after_m.xpos);
    write.with_side(33, before_h.xpos, h.xpos, m.xpos, after_m.xpos);
    write.with_both(40, h.upos, after_h.upos, before_m.upos, m.upos);
    write.with_both(41, before_h.upos, h.upos, before_m.upos, m.upos);
    write.with_both(42, h.upos, after_h.upos, m.upos, after_m.upos);
    write.with_both(43, before_h.upos, h.upos, m.upos, after_m.upos);
    const std::int64_t low = std::min(head, dependent), high = std::max(head, dependent);
    for (std::uint64_t left = tags_between_[low * (n_ + 1) + high]; left; left &= left - 1)
        write.with_side(60, h.upos, tags_[__builtin_ctzll(left)], m.upos);
    write.with_both(62, h.upos, m.upos, few(verbs_[high] - verbs_[low + 1]),
                    few(stops_[high] - stops_[low + 1]), few(joints_[high] - joints_[low + 1]));
    write.with_side(66, h.upos, m.upos, dependent == n_, dependent == 1, head == n_);
    if (head == 0) return;
    write.with_side(71, h.upos, m.upos, m.feats);
    for (std::int64_t i = h.feats_begin; i < h.feats_end; ++i)
        for (std::int64_t j = m.feats_begin; j < m.feats_end; ++j)
            if (const Morph &a = morphology_[i], &b = morphology_[j]; a.name == b.name)
                write.with_side(73, h.upos, m.upos, a.name, a.whole == b.whole);
}

[[gnu::always_inline]] inline void ArcFeatures::single_words(const Token& h, const Token& m,
                                                             Writer& write) const {
    write.with_both(1, h.lemma, h.upos);
    write.with_both(2, h.xpos);
    write.with_side(3, h.form);
    write.with_both(4, m.lemma, m.upos);
    write.with_both(5, m.xpos);
    write.with_side(6, m.form);
}

[[gnu::always_inline]] inline void ArcFeatures::word_pairs(const Token& h, const Token& m,
                                                           Writer& write) const {
    write.with_both(10, h.upos, m.upos);
    write.with_both(11, h.xpos, m.xpos);
    write.with_both(12, h.lemma, m.xpos);
    write.with_both(13, h.xpos, m.lemma);
    write.with_both(14, h.lemma, m.lemma);
    write.with_side(15, h.lemma, h.xpos, m.xpos);
    write.with_side(16, h.xpos, m.lemma, m.xpos);
    write.with_side(17, h.form, m.xpos);
    write.with_side(18, h.xpos, m.form);
    write.with_side(19, h.lemma, m.upos);
    write.with_side(20, h.upos, m.lemma);
    write.with_side(21, h.suffix, h.upos, m.suffix, m.upos);
    write.with_both(22, m.marker, m.upos, h.xpos);
    write.with_side(23, m.marker, m.upos, h.lemma);
    write.with_side(24, m.marker, m.lemma, h.lemma);
    write.with_side(25, m.marker, m.upos, h.marker, h.upos);
}

[[gnu::always_inline]] inline void ArcFeatures::neighbours(std::int64_t head, std::int64_t dependent,
                                                           Writer& write) const {
    const Token &h = at(head), &before_h = at(head - 1), &after_h = at(head + 1);
    const Token &m = at(dependent), &before_m = at(dependent - 1), &after_m = at(dependent + 1);
    write.with_both(30, h.xpos, after_h.xpos, before_m.xpos, m.xpos);
    write.with_both(31, before_h.xpos, h.xpos, before_m.xpos, m.xpos);
    write.with_both(32, h.xpos, after_h.xpos, m.xpos, after_m.xpos);
    write.with_both(33, before_h.xpos, h.xpos, m.xpos, after_m.xpos);
    write.with_both(34, h.xpos, before_m.xpos, m.xpos);
    write.with_both(35, h.xpos, m.xpos, after_m.xpos);
    write.with_both(36, before_h.xpos, h.xpos, m.xpos);
    write.with_both(37, h.xpos, after_h.xpos, m.xpos);
    write.with_both(40, h.upos, after_h.upos, before_m.upos, m.upos);
    write.with_both(41, before_h.upos, h.upos, before_m.upos, m.upos);
    write.with_both(42, h.upos, after_h.upos, m.upos, after_m.upos);
    write.with_both(43, before_h.upos, h.upos, m.upos, after_m.upos);
    write.with_side(44, h.upos, m.upos, after_m.upos, at(dependent + 2).upos);
    write.with_side(45, h.upos, m.upos, before_m.upos, at(dependent - 2).upos);
    write.with_side(46, h.upos, m.upos, after_h.upos, at(head + 2).upos);
    write.with_side(47, h.upos, m.upos, before_h.upos, at(head - 2).upos);
    write.with_side(48, h.xpos, before_m.lemma, m.xpos);
    write.with_side(49, h.xpos, m.xpos, after_m.lemma);
    write.with_side(50, before_h.lemma, h.xpos, m.xpos);
    write.with_side(51, h.xpos, after_h.lemma, m.xpos);
    write.with_both(52, before_h.upos, h.upos, after_h.upos, before_m.upos, m.upos, after_m.upos);
}

[[gnu::always_inline]] inline void ArcFeatures::between(std::int64_t head, std::int64_t dependent,
                                                        Writer& write) const {
    const Token &h = at(head), &m = at(dependent);
    const std::int64_t low = std::min(head, dependent), high = std::max(head, dependent);
    const std::int64_t place = low * (n_ + 1) + high;
    for (std::uint64_t left = tags_between_[place]; left; left &= left - 1)
        write.with_side(60, h.upos, tags_[__builtin_ctzll(left)], m.upos);
    for (std::uint64_t left = fine_between_[place]; left; left &= left - 1)
        write.with_side(61, h.xpos, fine_tags_[__builtin_ctzll(left)], m.xpos);
    const Key verbs = few(verbs_[high] - verbs_[low + 1]), stops = few(stops_[high] - stops_[low + 1]),
              joints = few(joints_[high] - joints_[low + 1]);
    write.with_both(62, h.upos, m.upos, verbs, stops, joints);
    write.with_side(63, h.xpos, m.xpos, verbs, stops);
    write.with_side(64, h.xpos, m.xpos, tags_between_[place] ? 1 + joints : 0);
    write.with_side(65, h.upos, m.lemma, verbs, stops);
    write.with_side(66, h.upos, m.upos, dependent == n_, dependent == 1, head == n_);
}

// Where both have a feature of the same name: their values, and whether they agree.
[[gnu::always_inline]] inline void ArcFeatures::morphology(const Token& h, const Token& m,
                                                           Writer& write) const {
    write.with_side(70, h.upos, h.feats, m.upos, m.feats);
    write.with_side(71, h.upos, m.upos, m.feats);
    write.with_side(72, h.upos, h.feats, m.upos);
    for (std::int64_t i = h.feats_begin; i < h.feats_end; ++i)
        for (std::int64_t j = m.feats_begin; j < m.feats_end; ++j) {
            const Morph &a = morphology_[i], &b = morphology_[j];
            if (a.name != b.name) continue;
            write.with_side(73, h.upos, m.upos, a.name, a.whole == b.whole);
            write.with_side(74, h.upos, m.upos, a.whole, b.whole);
        }
}

// Word clusters in place of words and of tags (Koo and others 2008).
[[gnu::always_inline]] inline void ArcFeatures::clusters(const Token& h, const Token& m,
                                                         Writer& write) const {
    write.with_both(80, h.cluster.shorter, m.cluster.shorter);
    write.with_both(81, h.cluster.longer, m.cluster.longer);
    write.with_side(82, h.cluster.whole, m.cluster.whole);
    write.with_side(83, h.cluster.whole, m.upos);
    write.with_side(84, h.upos, m.cluster.whole);
    write.with_side(85, h.cluster.longer, m.xpos);
    write.with_side(86, h.xpos, m.cluster.longer);
    write.with_side(87, h.cluster.longer, m.cluster.longer, m.marker);
}

void ArcFeatures::label_of_dependent(std::int64_t dependent, Side side, KeyList& out) const {
    Writer write(side, 0, out);
    const Token &m = at(dependent), &before = at(dependent - 1), &after = at(dependent + 1);
    write.with_side(100, m.lemma, m.upos);
    write.with_side(101, m.xpos);
    write.with_side(102, m.form);
    write.with_side(103, m.upos, m.feats);
    write.with_side(104, m.upos, m.suffix);
    write.with_side(105, before.xpos, m.xpos);
    write.with_side(106, m.xpos, after.xpos);
    write.with_side(107, before.xpos, m.xpos, after.xpos);
    write.with_side(108, before.lemma, m.xpos);
    write.with_side(109, m.xpos, after.lemma);
    write.with_side(110, m.marker, m.upos);
    write.with_side(111, m.marker, m.lemma);
    write.with_side(112, m.lemma, before.upos);
    write.with_side(113, m.lemma, after.upos);
    if (!has_clusters_) return;
    write.with_side(114, m.cluster.whole);
    write.with_side(115, m.cluster.longer, m.upos);
}

void ArcFeatures::label_of_head(std::int64_t head, Side side, KeyList& out) const {
    Writer write(side, 0, out);
    const Token& h = at(head);
    write.with_side(120, h.lemma, h.upos);
    write.with_side(121, h.xpos);
    write.with_side(122, h.upos, h.feats);
}

void ArcFeatures::label_of_arc(std::int64_t head, std::int64_t dependent, KeyList& out) const {
    Writer write(side_of(head, dependent), binned_distance(head, dependent), out);
    const Token &h = at(head), &m = at(dependent);
    const std::int64_t low = std::min(head, dependent), high = std::max(head, dependent);
    const Key stops = few(stops_[high] - stops_[low + 1]), verbs = few(verbs_[high] - verbs_[low + 1]);
    write.with_both(130, h.upos, m.upos);
    write.with_side(131, h.xpos, m.xpos);
    write.with_side(132, h.lemma, m.xpos);
    write.with_side(133, h.xpos, m.lemma);
    write.with_side(134, h.lemma, m.lemma);
    write.with_side(135, h.upos, m.upos, m.marker);
    write.with_side(136, h.lemma, m.upos, m.marker);
    write.with_side(137, h.upos, m.upos, at(dependent - 1).upos);
    write.with_side(138, h.upos, m.upos, at(dependent + 1).upos);
    write.with_side(139, h.upos, m.upos, at(head - 1).upos);
    write.with_side(140, h.upos, m.upos, at(head + 1).upos);
    write.with_side(141, h.upos, m.upos, stops, verbs);
    write.with_side(142, h.upos, m.upos, m.feats);
    write.with_side(143, h.upos, h.feats, m.upos);
    if (!has_clusters_) return;
    write.with_side(144, h.cluster.longer, m.cluster.longer);
    write.with_side(145, h.upos, m.cluster.whole);
    write.with_side(146, h.cluster.whole, m.upos);
}

}  // namespace crfkit
