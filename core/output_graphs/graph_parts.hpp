// A data set whose sequences are graphs of the user's own, as parts (training/parts.hpp): features of
// positions score states, transitions and the structure's own weights score arcs. Feature functions may stand
// in place of features.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/annotation.hpp"
#include "data/arc_model.hpp"
#include "data/design.hpp"
#include "data/layout.hpp"
#include "lattice/function_factors.hpp"
#include "output_graphs/output_graph.hpp"
#include "training/parts.hpp"

namespace crfkit {

struct GraphData {
    std::shared_ptr<const Layout> layout;
    std::shared_ptr<const Design> design;
    std::shared_ptr<const FunctionSlices> functions;  // null: the design has the features
    std::int64_t first_weight;                        // where the structure's own weights begin
    std::vector<std::shared_ptr<const OutputGraph>> graphs;
    std::vector<std::int32_t> graph_of;  // [N] the graph of each sequence, which is of its length
};

class GraphParts final : public PartSource {
  public:
    // The structure's own weights lie behind all others and end at or before n_weights, D. Without an
    // annotation all label sequences are allowed. Throws std::invalid_argument where things do not fit
    // together, and, naming the sequence, where no label sequence is possible.
    GraphParts(std::shared_ptr<const GraphData> data, std::optional<Annotation> gold, std::int64_t n_weights,
               int n_threads);

    std::unique_ptr<PartReader> open() const override;

  private:
    class Reader;
    void check_possible(int n_threads) const;

    std::shared_ptr<const GraphData> data_;
    std::optional<Annotation> gold_;
    ArcModel model_;
};

}  // namespace crfkit
