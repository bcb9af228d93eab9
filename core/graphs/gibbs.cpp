#include "graphs/gibbs.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/interruption.hpp"
#include "base/threads.hpp"
#include "graphs/assignment_search.hpp"
#include "graphs/message_domain.hpp"

namespace crfkit {

namespace {

using Random = std::mt19937_64;

double uniform(Random& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

// One chain, with weights of plain numbers or of logarithms.
template <class Domain>
class GibbsChain {
  public:
    GibbsChain(const MessagePlan& plan, const GibbsBlocks& blocks, std::span<const double> scores,
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

struct ChainResult {
    std::vector<double> of_variables, of_tables;
};

template <class Domain>
ChainResult run_chain(const MessagePlan& plan, const GibbsBlocks& blocks, std::span<const double> scores,
                      std::span<const bool> allowed, const GibbsOptions& options,
                      std::vector<std::int32_t> state, Random random, std::int64_t begin, std::int64_t end,
                      GibbsSamples& out) {
    const FactorGraph& graph = plan.graph;
    GibbsChain<Domain> chain(plan, blocks, scores, allowed);
    ChainResult result{std::vector<double>(static_cast<std::size_t>(graph.value_ptr.back())),
                       std::vector<double>(scores.size())};
    for (std::int64_t i = 0; i < options.burn_in; ++i) chain.sweep(state, random, nullptr);
    for (std::int64_t i = begin; i < end; ++i) {
        for (std::int64_t k = 1; k < options.thin; ++k) chain.sweep(state, random, nullptr);
        chain.sweep(state, random, result.of_variables.data());
        std::copy(state.begin(), state.end(), out.samples.begin() + i * graph.n_variables());
        out.scores[i] = graph.score(scores, state);
        for (std::int64_t f = 0; f < graph.n_tables(); ++f) {
            std::int64_t place = graph.table_ptr[f];
            for (std::int64_t e = graph.scope_ptr[f]; e < graph.scope_ptr[f + 1]; ++e)
                place += blocks.strides[e] * state[graph.scopes[e]];
            result.of_tables[place] += 1;
        }
    }
    return result;
}

}  // namespace

GibbsSamples gibbs(const MessagePlan& plan, std::span<const double> scores, std::span<const bool> allowed,
                   const GibbsOptions& options) {
    const FactorGraph& graph = plan.graph;
    const GibbsBlocks blocks(plan, options.blocked);
    GibbsSamples out;
    out.n_blocks = static_cast<std::int64_t>(blocks.blocks.size());
    out.samples.resize(static_cast<std::size_t>(options.n * graph.n_variables()));
    out.scores.resize(static_cast<std::size_t>(options.n));
    for (std::int64_t c = 0; c <= options.n_chains; ++c)
        out.chain_ptr.push_back(options.n / options.n_chains * c + std::min(c, options.n % options.n_chains));
    std::vector<ChainResult> results(static_cast<std::size_t>(options.n_chains));
    std::vector<char> possible(results.size(), 1);
    parallel_for(options.n_chains, options.n_threads, [&](std::int64_t c, int) {
        std::seed_seq seed{options.seed & 0xffffffff, options.seed >> 32, static_cast<std::uint64_t>(c)};
        Random random(seed);
        std::vector<double> preference(static_cast<std::size_t>(graph.value_ptr.back()));
        for (double& x : preference) x = uniform(random);
        const auto start = find_assignment(plan, scores, allowed, preference);
        possible[c] = start.has_value();
        if (!start) return;
        const std::int64_t begin = out.chain_ptr[c], end = out.chain_ptr[c + 1];
        try {
            results[c] = run_chain<Sums<PlainNumbers>>(plan, blocks, scores, allowed, options, *start, random,
                                                       begin, end, out);
        } catch (const Underflow&) {
            results[c] = run_chain<Sums<Logarithms>>(plan, blocks, scores, allowed, options, *start, random,
                                                     begin, end, out);
        }
    });
    out.possible = std::find(possible.begin(), possible.end(), 0) == possible.end();
    if (!out.possible) return out;
    out.of_variables.resize(static_cast<std::size_t>(graph.value_ptr.back()));
    out.of_tables.resize(scores.size());
    const double share = 1.0 / static_cast<double>(options.n);
    for (const ChainResult& result : results) {
        for (std::size_t i = 0; i < out.of_variables.size(); ++i)
            out.of_variables[i] += share * result.of_variables[i];
        for (std::size_t i = 0; i < out.of_tables.size(); ++i)
            out.of_tables[i] += share * result.of_tables[i];
    }
    return out;
}

}  // namespace crfkit
