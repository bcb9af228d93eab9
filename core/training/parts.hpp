// Outputs as parts: what a structure must tell so that every optimizer can train it (part_loss.hpp).
//
// The outputs of one sequence are the paths of an acyclic graph (paths/graph.hpp); its parts are the nodes
// and arcs. A factor is a list of (weight, value), and a part scores what its factors score:
//
//   score(factor) = Σ_k value_k · w[weight_k],     score(part) = Σ of its factors,     scores = A F w
//
// with A [parts, factors] of zeros and ones and F [factors, D]. Parts may share a factor: all nodes of a
// trellis that have the same label at the same position, for example. With P the marginals of the parts,
//
//   ∇_w (log Z − log Z_gold) = Fᵀ r,     r = Aᵀ (P − P_gold),     one residual for each factor.
//
// The annotation allows some nodes and arcs; Z_gold sums over the paths that keep to them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/design.hpp"
#include "paths/array_graph.hpp"

namespace crfkit {

// Lists, one after the other; items are added to the last one.
struct PartLists {
    std::vector<std::int64_t> ptr{0};  // [lists + 1]
    std::vector<std::int64_t> ids;

    std::int64_t size() const { return static_cast<std::int64_t>(ptr.size()) - 1; }
    void clear() {
        ptr.assign(1, 0);
        ids.clear();
    }
    void open() { ptr.push_back(ptr.back()); }
    void add(std::int64_t id) {
        ids.push_back(id);
        ++ptr.back();
    }
};

// One sequence. It is written level by level: begin_level, then for each of its nodes add_node and the arcs
// into it; factors may be added at any time. START is there from the beginning. The last level is END alone.
class Parts : public PathShape {
  public:
    void clear();

    // An empty factor; returns its number. add_feature adds to the newest one.
    std::int64_t add_factor() {
        factors.open();
        return factors.size() - 1;
    }
    void add_feature(std::int64_t weight, double value) {
        factors.add(weight);
        values.push_back(value);
    }
    // Entries begin … end − 1 of a list of weights.
    void add_features(const ActiveIds& list, std::int64_t begin, std::int64_t end) {
        factors.ids.insert(factors.ids.end(), list.ids.begin() + begin, list.ids.begin() + end);
        factors.ptr.back() += end - begin;
        if (list.values.size() > 0)
            values.insert(values.end(), list.values.begin() + begin, list.values.begin() + end);
        else
            values.resize(values.size() + static_cast<std::size_t>(end - begin), 1.0);
    }

    void begin_level();
    // Returns its number. `label`: what an output says by passing it, −1: nothing. Inner nodes come first.
    std::int64_t add_node(std::int32_t label, bool allowed = true, bool inner = false);
    // An arc into the newest node.
    void add_arc(std::int64_t from, bool allowed = true, bool is_silent = false);
    // A factor of the newest node, of the newest arc.
    void score_node(std::int64_t factor) { node_factors.add(factor); }
    void score_arc(std::int64_t factor) { arc_factors.add(factor); }
    // END with arcs from these nodes. To be called last.
    void finish(std::int64_t first, std::int64_t last);
    // The same where END has been added as a node of the last level, with its arcs.
    void finish();

    PartLists factors;                    // [factors] their weights
    std::vector<double> values;           // of the weights
    PartLists node_factors, arc_factors;  // [nodes], [arcs] factors of each
    std::vector<std::int32_t> label;      // [nodes]
    std::vector<std::uint8_t> node_allowed, arc_allowed;
};

// Reads the sequences of a data set, in any order. One thread at a time.
class PartReader {
  public:
    virtual ~PartReader() = default;
    // Writes sequence n into `parts`, whatever is there.
    virtual void load(std::int64_t n, Parts& parts) = 0;
};

class PartSource {
  public:
    PartSource(std::int64_t weights, std::vector<double> of_sequences)
        : n_weights(weights), weights(std::move(of_sequences)) {}
    virtual ~PartSource() = default;
    PartSource(const PartSource&) = delete;
    PartSource& operator=(const PartSource&) = delete;

    // A new one for one thread; the source must outlive it.
    virtual std::unique_ptr<PartReader> open() const = 0;

    std::int64_t n_sequences() const { return static_cast<std::int64_t>(weights.size()); }

    const std::int64_t n_weights;       // D
    const std::vector<double> weights;  // [N] how often each sequence counts
};

}  // namespace crfkit
