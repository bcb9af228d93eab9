#include "text/row_extraction.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/threads.hpp"

namespace crfkit {

namespace {

// The ids of all names of one vocabulary in another, which grows by those that it lacks.
std::vector<std::int32_t> added(const Vocabulary& names, Vocabulary& vocabulary) {
    constexpr std::int32_t ahead = 16;  // names whose slots are being prefetched
    std::vector<std::uint64_t> hashes(static_cast<std::size_t>(names.size()));
    for (std::int32_t id = 0; id < names.size(); ++id) hashes[id] = Vocabulary::hash(names.name(id));
    std::vector<std::int32_t> ids(hashes.size());
    for (std::int32_t id = 0; id < names.size(); ++id) {
        if (id + ahead < names.size()) vocabulary.prefetch_slot(hashes[id + ahead]);
        ids[id] = vocabulary.add(names.name(id), hashes[id]);
    }
    return ids;
}

void rename(FeatureArrays& features, const std::vector<std::int32_t>& ids) {
    for (std::int32_t& id : features.ids) id = ids[id];
}

}  // namespace

FeatureArrays joined(std::vector<FeatureArrays> parts, int n_threads) {
    if (parts.size() == 1) return std::move(parts[0]);
    FeatureArrays all;
    std::vector<std::size_t> first_position{0}, first_id{0};
    for (const FeatureArrays& part : parts) {
        first_position.push_back(first_position.back() + part.position_ptr.size() - 1);
        first_id.push_back(first_id.back() + part.ids.size());
    }
    const bool valued =
        std::any_of(parts.begin(), parts.end(), [](const auto& part) { return !part.values.empty(); });
    all.position_ptr.resize(first_position.back() + 1);
    all.ids.resize(first_id.back());
    if (valued) all.values.resize(first_id.back(), 1.0);
    parallel_for(static_cast<std::int64_t>(parts.size()), n_threads, [&](std::int64_t n, int) {
        FeatureArrays part = std::move(parts[n]);
        for (std::size_t t = 1; t < part.position_ptr.size(); ++t)
            all.position_ptr[first_position[n] + t] =
                part.position_ptr[t] + static_cast<std::int64_t>(first_id[n]);
        std::copy(part.ids.begin(), part.ids.end(), all.ids.begin() + first_id[n]);
        std::copy(part.values.begin(), part.values.end(), all.values.begin() + (valued ? first_id[n] : 0));
    });
    return all;
}

// One piece per block; where the pieces have vocabularies of their own, two per thread, so that few names are
// in several of them.
std::vector<RowExtraction::Piece> RowExtraction::cut(std::span<const RowBlock* const> blocks, bool own,
                                                     int n_threads) const {
    std::int64_t n_positions = 0, taken = 0;
    for (const RowBlock* block : blocks) n_positions += block->n_positions();
    const std::int64_t least = own ? n_positions / (2 * n_threads) + 1 : 0;
    std::vector<Piece> pieces;
    for (std::int64_t b = 0; b < static_cast<std::int64_t>(blocks.size()); ++b) {
        if (pieces.empty() || taken >= least) {
            pieces.push_back({b, b, {}, {}, {}, {}});
            pieces.back().own_states.hash_features(states_.feature_hash());
            pieces.back().own_arcs.hash_features(arcs_.feature_hash());
            taken = 0;
        }
        pieces.back().last_block = b + 1;
        taken += blocks[b]->n_positions();
    }
    return pieces;
}

void RowExtraction::extract(Piece& piece, Vocabulary& states, Vocabulary& arcs,
                            std::span<const RowBlock* const> blocks, std::span<const std::int32_t> columns,
                            const ApplyTransform& apply) {
    FeatureWriter state_writer(states, grow_), arc_writer(arcs, grow_);
    auto memo = extractor_.take_memo();
    for (std::int64_t b = piece.first_block; b < piece.last_block; ++b) {
        const RowBlock& block = *blocks[b];
        for (std::int64_t n = 0; n < block.n_sequences(); ++n) {
            const std::int64_t first = block.sequence_ptr[n];
            extractor_.extract({block, first, block.sequence_ptr[n + 1] - first, columns}, *memo, apply,
                               state_writer, arc_writer);
        }
    }
    extractor_.give_back(std::move(memo));
    piece.states = state_writer.finish();
    piece.arcs = arc_writer.finish();
}

void RowExtraction::merge(std::vector<Piece>& pieces, int n_threads) {
    std::vector<std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>>> ids;
    for (const Piece& piece : pieces)
        ids.emplace_back(added(piece.own_states, states_), added(piece.own_arcs, arcs_));
    parallel_for(static_cast<std::int64_t>(pieces.size()), n_threads, [&](std::int64_t n, int) {
        rename(pieces[n].states, ids[n].first);
        rename(pieces[n].arcs, ids[n].second);
    });
}

void RowExtraction::add(std::span<const RowBlock* const> blocks, std::span<const std::int32_t> columns,
                        const ApplyTransform& apply, int n_threads) {
    const bool own = grow_ && n_threads > 1 && blocks.size() > 1;
    std::vector<Piece> pieces = cut(blocks, own, n_threads);
    parallel_for(static_cast<std::int64_t>(pieces.size()), grow_ && !own ? 1 : n_threads,
                 [&](std::int64_t n, int) {
                     Piece& piece = pieces[n];
                     extract(piece, own ? piece.own_states : states_, own ? piece.own_arcs : arcs_, blocks,
                             columns, apply);
                 });
    if (own) merge(pieces, n_threads);
    for (const RowBlock* block : blocks) {
        const std::int64_t first = sequence_ptr_.back();
        for (std::int64_t n = 1; n <= block->n_sequences(); ++n)
            sequence_ptr_.push_back(first + block->sequence_ptr[n]);
    }
    for (Piece& piece : pieces) {
        all_states_.push_back(std::move(piece.states));
        all_arcs_.push_back(std::move(piece.arcs));
    }
}

FeatureArrays RowExtraction::take_states(int n_threads) { return joined(std::move(all_states_), n_threads); }

FeatureArrays RowExtraction::take_arcs(int n_threads) { return joined(std::move(all_arcs_), n_threads); }

}  // namespace crfkit
