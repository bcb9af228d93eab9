// Sums, samples and maxima within blocks of variables, given all others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "base/interruption.hpp"
#include "graphs/assignment_search.hpp"
#include "graphs/gibbs_blocks.hpp"
#include "graphs/message_domain.hpp"

namespace crfkit {

using Random = std::mt19937_64;

inline double uniform(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

// Blocks of one graph, with weights of plain numbers or of logarithms.
template <class Domain>
class ForestBlocks {
  public:
    ForestBlocks(const MessagePlan& plan, const GibbsBlocks& blocks, std::span<const double> scores,
                 std::span<const bool> allowed)
        : plan_(plan),
          graph_(plan.graph),
          blocks_(blocks),
          own_(own_scores(graph_, scores, allowed)),
          weights_(scores.size()) {
        for (std::int64_t v = 0; v < graph_.n_variables(); ++v)
            weigh(own_.data() + graph_.value_ptr[v], graph_.cardinalities[v],
                  own_.data() + graph_.value_ptr[v]);
        for (const std::int64_t f : plan.tables)
            weigh(scores.data() + graph_.table_ptr[f], graph_.table_ptr[f + 1] - graph_.table_ptr[f],
                  weights_.data() + graph_.table_ptr[f]);
        up_ = own_;
        beliefs_.resize(own_.size());
        std::size_t n_links = 0;
        for (const GibbsBlock& block : blocks.blocks) n_links = std::max(n_links, block.links.size());
        bases_.resize(n_links);
        sums_.resize(n_links);
    }

    // Gives every block once the best values for all others (Domain: maxima).
    void maximise(std::vector<std::int32_t>& state) {
        for (const GibbsBlock& block : blocks_.blocks) {
            gather(block, state);
            for (const std::int64_t v : block.roots) {
                const double* weights = up_.data() + graph_.value_ptr[v];
                state[v] = static_cast<std::int32_t>(
                    std::max_element(weights, weights + graph_.cardinalities[v]) - weights);
            }
            for (std::size_t i = 0; i < block.links.size(); ++i) {
                const BlockLink& link = block.links[i];
                double best = Domain::zero;
                const std::int64_t x = state[graph_.scopes[link.parent]];
                each_child(link, bases_[i] + x * blocks_.strides[link.parent], [&](double product) {
                    if (product > best)
                        for (std::size_t k = 0; k < link.children.size(); ++k)
                            state[graph_.scopes[link.children[k]]] = at_[k];
                    best = std::max(best, product);
                    return true;
                });
            }
        }
    }
    // Draws every block once; adds the probabilities of all values given the other blocks to `marginals`.
    void sweep(std::vector<std::int32_t>& state, Random& random, double* marginals) {
        for (const GibbsBlock& block : blocks_.blocks) {
            gather(block, state);
            if (marginals) add_marginals(block, marginals);
            draw(block, state, random);
        }
    }

  private:
    static void weigh(const double* scores, std::int64_t n, double* out) {
        const double largest = *std::max_element(scores, scores + n);
        for (std::int64_t i = 0; i < n; ++i) out[i] = Domain::of_log(scores[i] - largest);
    }
    double* up(std::int64_t edge) { return up_.data() + graph_.value_ptr[graph_.scopes[edge]]; }
    std::int64_t count(std::int64_t edge) const { return graph_.cardinalities[graph_.scopes[edge]]; }

    // Where the entries of table f begin that agree with the values outside the block of `edge`.
    std::int64_t base(std::int64_t edge, const std::vector<std::int32_t>& state) const {
        const std::int64_t f = plan_.table_of[edge];
        const std::int32_t block = blocks_.block_of[graph_.scopes[edge]];
        std::int64_t place = graph_.table_ptr[f];
        for (std::int64_t e = graph_.scope_ptr[f]; e < graph_.scope_ptr[f + 1]; ++e)
            if (blocks_.block_of[graph_.scopes[e]] != block)
                place += blocks_.strides[e] * state[graph_.scopes[e]];
        return place;
    }

    // Calls visit(weight · Π up of the children) for each configuration of the children, whose values are in
    // at_, as long as it returns true.
    template <class Visit>
    void each_child(const BlockLink& link, std::int64_t place, const Visit& visit) {
        at_.assign(link.children.size(), 0);
        for (;;) {
            double product = weights_[place];
            for (std::size_t k = 0; k < link.children.size(); ++k)
                product = Domain::times(product, up(link.children[k])[at_[k]]);
            if (product != Domain::zero && !visit(product)) return;
            std::size_t k = link.children.size();
            for (; k-- > 0;) {
                const std::int64_t stride = blocks_.strides[link.children[k]];
                place += stride;
                if (++at_[k] < count(link.children[k])) break;
                place -= stride * at_[k];
                at_[k] = 0;
            }
            if (k == static_cast<std::size_t>(-1)) return;
        }
    }

    // Sums from the leaves to the roots: up_v = own_v · Π tables that end at v · Π_links sum over the
    // children.
    void gather(const GibbsBlock& block, const std::vector<std::int32_t>& state) {
        for (const std::int64_t v : block.members)
            std::copy_n(own_.data() + graph_.value_ptr[v], graph_.cardinalities[v],
                        up_.data() + graph_.value_ptr[v]);
        for (const std::int64_t edge : block.boundary) {
            const double* weights = weights_.data() + base(edge, state);
            for (std::int64_t x = 0; x < count(edge); ++x)
                up(edge)[x] = Domain::times(up(edge)[x], weights[x * blocks_.strides[edge]]);
            pace_.work(8);
        }
        for (const std::int64_t v : block.members)
            normalise<Domain>(up_.data() + graph_.value_ptr[v], graph_.cardinalities[v]);
        for (std::size_t i = block.links.size(); i-- > 0;) {
            const BlockLink& link = block.links[i];
            bases_[i] = base(link.parent, state);
            sums_[i].assign(static_cast<std::size_t>(count(link.parent)), Domain::zero);
            for (std::int64_t x = 0; x < count(link.parent); ++x) {
                double& sum = sums_[i][x];
                each_child(link, bases_[i] + x * blocks_.strides[link.parent], [&](double product) {
                    sum = Domain::plus(sum, product);
                    return true;
                });
                up(link.parent)[x] = Domain::times(up(link.parent)[x], sum);
            }
            normalise<Domain>(up(link.parent), count(link.parent));
            pace_.work(64);
        }
    }

    // b_root ∝ up; b(parent, children) = b(parent) · weight · Π up / sum(parent).
    void add_marginals(const GibbsBlock& block, double* marginals) {
        for (const std::int64_t v : block.members)
            std::fill_n(beliefs_.data() + graph_.value_ptr[v], graph_.cardinalities[v], 0.0);
        for (const std::int64_t v : block.roots) {
            const double* weights = up_.data() + graph_.value_ptr[v];
            double* belief = beliefs_.data() + graph_.value_ptr[v];
            double sum = 0;
            for (std::int32_t x = 0; x < graph_.cardinalities[v]; ++x)
                sum += belief[x] = Domain::to_plain(weights[x]);
            for (std::int32_t x = 0; x < graph_.cardinalities[v]; ++x) belief[x] /= sum;
        }
        for (std::size_t i = 0; i < block.links.size(); ++i) {
            const BlockLink& link = block.links[i];
            for (std::int64_t x = 0; x < count(link.parent); ++x) {
                const double p = beliefs_[graph_.value_ptr[graph_.scopes[link.parent]] + x],
                             sum = sums_[i][x];
                if (p == 0) continue;
                each_child(link, bases_[i] + x * blocks_.strides[link.parent], [&](double product) {
                    const double share = p * Domain::to_plain(Domain::over(product, sum));
                    for (std::size_t k = 0; k < link.children.size(); ++k)
                        beliefs_[graph_.value_ptr[graph_.scopes[link.children[k]]] + at_[k]] += share;
                    return true;
                });
            }
        }
        for (const std::int64_t v : block.members)
            for (std::int64_t i = graph_.value_ptr[v]; i < graph_.value_ptr[v + 1]; ++i)
                marginals[i] += beliefs_[i];
    }

    // Values from the roots to the leaves.
    void draw(const GibbsBlock& block, std::vector<std::int32_t>& state, Random& random) {
        for (const std::int64_t v : block.roots) {
            const double* weights = up_.data() + graph_.value_ptr[v];
            double sum = 0;
            for (std::int32_t x = 0; x < graph_.cardinalities[v]; ++x) sum += Domain::to_plain(weights[x]);
            double left = uniform(random) * sum;
            for (std::int32_t x = 0; x < graph_.cardinalities[v]; ++x) {
                if (weights[x] == Domain::zero) continue;
                state[v] = x;  // the last possible one, should rounding leave something
                if ((left -= Domain::to_plain(weights[x])) < 0) break;
            }
        }
        for (std::size_t i = 0; i < block.links.size(); ++i) {
            const BlockLink& link = block.links[i];
            const std::int32_t x = state[graph_.scopes[link.parent]];
            double left = uniform(random);
            each_child(link, bases_[i] + x * blocks_.strides[link.parent], [&](double product) {
                for (std::size_t k = 0; k < link.children.size(); ++k)
                    state[graph_.scopes[link.children[k]]] = at_[k];
                return (left -= Domain::to_plain(Domain::over(product, sums_[i][x]))) >= 0;
            });
        }
    }

    const MessagePlan& plan_;
    const FactorGraph& graph_;
    const GibbsBlocks& blocks_;
    std::vector<double> own_, weights_, up_, beliefs_;
    std::vector<std::int64_t> bases_;        // of each link of the block at hand
    std::vector<std::vector<double>> sums_;  // of each link, for the values of its parent
    std::vector<std::int32_t> at_;
    Pace pace_;
};

}  // namespace crfkit
