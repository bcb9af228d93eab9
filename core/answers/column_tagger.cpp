#include "answers/column_tagger.hpp"

#include <array>
#include <utility>

#include "text/row_extraction.hpp"

namespace crfkit {
namespace {

void append_row(const RowBlock& rows, std::int64_t t, const ColumnForm& form, std::string& out) {
    const RowBlock::Place* cells = rows.cells.data() + t * static_cast<std::int64_t>(rows.n_columns);
    const RowBlock::Place& last = cells[rows.n_columns - 1];
    if (form.separator == form.joint && form.separator != " ") {  // as it stands in the file
        out.append(rows.bytes, cells[0].begin, last.begin + last.length - cells[0].begin);
        out += form.joint;
        return;
    }
    for (std::size_t k = 0; k < rows.n_columns; ++k) {
        out.append(rows.bytes, cells[k].begin, cells[k].length);
        out += form.joint;
    }
}

std::string written(const ColumnBlock& block, const ColumnForm& form, std::span<const std::int32_t> best,
                    std::span<const std::string> labels, bool labels_only) {
    const RowBlock& rows = block.rows;
    std::string out;
    out.reserve(rows.bytes.size() + 8 * best.size());
    auto comment = block.comments.begin();
    for (std::int64_t n = 0; n < rows.n_sequences(); ++n) {
        for (; comment != block.comments.end() && comment->sequence == n; ++comment) {
            out.append(rows.bytes, comment->text.begin, comment->text.length);
            out += '\n';
        }
        for (std::int64_t t = rows.sequence_ptr[n]; t < rows.sequence_ptr[n + 1]; ++t) {
            if (!labels_only) append_row(rows, t, form, out);
            out += labels[best[t]];
            out += '\n';
        }
        out += '\n';
    }
    return out;
}

FeatureList list_of(const FeatureArrays& arrays) { return {arrays.position_ptr, arrays.ids, arrays.values}; }

}  // namespace

TaggedChunk ColumnTagger::tag(ColumnChunk& chunk, const ColumnForm& form,
                              std::span<const std::int32_t> inputs, bool labels_only,
                              const ApplyTransform& apply) const {
    ColumnBlock block = read_block(chunk, form);
    std::vector<std::int32_t> columns;
    for (const std::int32_t column : extractor.columns()) columns.push_back(inputs[column]);
    std::vector<std::int32_t> best(static_cast<std::size_t>(block.rows.n_positions()));
    try {
        RowExtraction extraction(extractor, states, arcs, false);
        extraction.add(std::array<const RowBlock*, 1>{&block.rows}, columns, apply, 1);
        const FeatureArrays on_labels = extraction.take_states(1), on_arcs = extraction.take_arcs(1);
        const bool with_arcs = extractor.has_arc_lines();
        const Design design(layout, block.rows.sequence_ptr, list_of(on_labels),
                            with_arcs ? list_of(on_arcs) : FeatureList{}, {}, {}, Purpose::questions, 1);
        potentials.score(design, 1)->decode(best.data(), 1);
    } catch (...) {
        chunk.bytes = std::move(block.rows.bytes);
        throw;
    }
    return {written(block, form, best, labels, labels_only), block.rows.n_sequences()};
}

}  // namespace crfkit
