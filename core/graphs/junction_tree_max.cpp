#include "graphs/junction_tree_max.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "graphs/clique_blocks.hpp"

namespace crfkit {
namespace {

// The best scores of all separators.
class Maxima {
  public:
    Maxima(const JunctionTree& tree, std::span<const double> scores) : tree_(tree) {
        for (std::size_t c = tree.cliques.size(); c-- > 0;)
            if (tree.cliques[c].n_summed > 1) choices_.push_back(static_cast<std::int32_t>(c));
        std::int64_t total = 0;
        for (const TreeTable& table : tree.tables) total += table.size;
        arena_.resize(total);
        double* next = arena_.data();
        for (const TreeTable& table : tree.tables) {
            data_.push_back(next);
            next += table.size;
        }
        for (std::size_t i = 0; i < tree.tables.size(); ++i) {
            const TreeTable& table = tree.tables[i];
            const std::int64_t* places = tree.places.data() + table.first_place;
            for (std::int64_t j = 0; table.maker < 0 && j < table.size; ++j)
                data_[i][j] = places[j] < 0 ? 0.0 : scores[places[j]];
        }
        for (const Clique& clique : tree.cliques) collect(clique);
    }

    // The cliques that choose a value, in the order in which they do.
    const std::vector<std::int32_t>& choices() const { return choices_; }

    bool possible(std::span<const double> scores) const {
        for (const std::int64_t place : tree_.conditioned.constants)
            if (scores[place] == -HUGE_VAL) return false;
        for (const Clique& clique : tree_.cliques)
            if (tree_.tables[clique.message].user < 0 && *data_[clique.message] == -HUGE_VAL) return false;
        return true;
    }

    // The scores of the summed configurations of a clique, given the assignment of its separator.
    void weigh(std::int32_t c, std::span<const std::int32_t> assignment, std::vector<double>& weights) const {
        const Clique& clique = tree_.cliques[c];
        weights.assign(clique.n_summed, 0.0);
        for (const CliqueInput& input : clique.inputs) {
            const double* entries = data_[input.table] + input_place(tree_, clique, input, assignment);
            for (std::int64_t x = 0; x < clique.n_summed; ++x) weights[x] += entries[input.summed[x]];
        }
    }

  private:
    void collect(const Clique& clique) {
        block_.resize(std::max<std::size_t>(block_.size(), clique.block));
        double* message = data_[clique.message];
        for_each_block(clique, [&](std::int64_t begin, const std::int64_t* bases) {
            multiply_block<true>(kernels_, clique, data_.data(), bases, 0, message + begin);
            for (std::int64_t x = 1; x < clique.n_summed; ++x) {
                multiply_block<true>(kernels_, clique, data_.data(), bases, x, block_.data());
                kernels_.raise(message + begin, block_.data(), clique.block);
            }
        });
    }

    const JunctionTree& tree_;
    const TableKernels& kernels_ = table_kernels();
    Buffer<double> arena_;
    std::vector<double*> data_;
    std::vector<double> block_;
    std::vector<std::int32_t> choices_;
};

// A set of assignments: the first choices are those of a parent, then one other choice, then the best ones.
// Its best assignment loses this much against the best of all.
struct Branch {
    double loss;
    std::int64_t number;  // in the order of making, which decides among equals
    std::int64_t parent;  // among those that were taken; −1: none
    std::int32_t choice;  // the place among the choices that differs from the parent
    std::int32_t value;   // the summed configuration that it chooses there

    bool operator<(const Branch& other) const {  // a queue gives the largest first
        return loss != other.loss ? loss > other.loss : number > other.number;
    }
};

constexpr std::int64_t kFewBranches = 1024;
constexpr double kBytesOfAnswer = 900;  // what holds a solution where it is returned to, about

// The branches with the least losses: as many as solutions are still wanted, since each gives one.
class Branches {
  public:
    bool empty() const { return heap_.empty(); }
    void push(const Branch& branch) {
        heap_.push_back(branch);
        std::push_heap(heap_.begin(), heap_.end());
    }
    Branch pop() {
        std::pop_heap(heap_.begin(), heap_.end());
        const Branch best = heap_.back();
        heap_.pop_back();
        return best;
    }
    // Forgets all but the best `n`, from time to time.
    void keep(std::int64_t n) {
        const auto most = static_cast<std::size_t>(std::max(n, kFewBranches));
        if (heap_.size() / 2 <= most) return;
        const auto end = heap_.begin() + static_cast<std::ptrdiff_t>(most);
        std::nth_element(heap_.begin(), end, heap_.end(),
                         [](const Branch& a, const Branch& b) { return b < a; });
        heap_.erase(end, heap_.end());
        std::make_heap(heap_.begin(), heap_.end());
    }

  private:
    std::vector<Branch> heap_;  // the best one first
};

}  // namespace

// Lawler's partition. The assignments that share their first i − 1 choices with a solution y and differ in
// choice i are a branch; since messages hold the exact best of what comes later, the best of a branch loses
// exactly what choice i loses.
std::vector<ScoredAssignment> k_best_assignments(const FactorGraph& graph, const JunctionTree& tree,
                                                 std::span<const double> scores, std::int64_t k) {
    std::vector<ScoredAssignment> found;
    if (!tree.possible()) return found;
    const Maxima maxima(tree, scores);
    if (!maxima.possible(scores)) return found;
    const auto& choices = maxima.choices();
    const auto n = static_cast<std::int32_t>(choices.size());
    std::vector<std::vector<std::int32_t>> taken;  // chosen configurations [choices] of the solutions
    Branches queue;
    std::int64_t number = 0;
    queue.push({0.0, number++, -1, -1, 0});
    std::vector<std::int32_t> assignment(tree.conditioned.n_free());
    std::vector<double> weights;
    Pace pace;
    while (!queue.empty() && static_cast<std::int64_t>(found.size()) < k) {
        const Branch branch = queue.pop();
        std::vector<std::int32_t> chosen(n);
        for (std::int32_t i = 0; i < n; ++i) {
            const Clique& clique = tree.cliques[choices[i]];
            pace.work(16 * clique.n_summed);
            if (i < branch.choice) {
                chosen[i] = taken[branch.parent][i];
            } else if (i == branch.choice) {
                chosen[i] = branch.value;
            } else {
                maxima.weigh(choices[i], assignment, weights);
                const auto best = std::max_element(weights.begin(), weights.end());
                chosen[i] = static_cast<std::int32_t>(best - weights.begin());
                for (std::int32_t x = 0; k > 1 && x < clique.n_summed; ++x)
                    if (x != chosen[i] && weights[x] > -HUGE_VAL)
                        queue.push({branch.loss + (*best - weights[x]), number++,
                                    static_cast<std::int64_t>(taken.size()), i, x});
            }
            assign_summed(tree, clique, chosen[i], assignment);
        }
        if (k > 1) taken.push_back(std::move(chosen));
        queue.keep(k - static_cast<std::int64_t>(found.size()) - 1);
        ScoredAssignment one{0, std::vector<std::int32_t>(graph.cardinalities.size())};
        write_values(tree, assignment, one.values.data());
        one.score = graph.score(scores, one.values);
        found.push_back(std::move(one));
    }
    // losses are sums in another order than scores: equal to rounding, and sorted by the scores that are
    // given
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.score > b.score; });
    return found;
}

double bytes_of_k_best(const JunctionTree& tree, std::int64_t k) {
    if (k < 2) return 0;
    double assignments = 1, choices = 0, values = 0;
    for (const std::int32_t size : tree.conditioned.sizes) assignments *= size;
    for (const Clique& clique : tree.cliques) {
        if (clique.n_summed < 2) continue;
        ++choices;
        values += static_cast<double>(clique.n_summed);
    }
    const double n = std::min(static_cast<double>(k), assignments);
    const double list = 64;  // a vector with its numbers, besides these
    const double solution = kBytesOfAnswer + sizeof(ScoredAssignment) + 2 * list + 4 * choices +
                            4 * static_cast<double>(tree.conditioned.fixed.size());
    // a list of branches that grows has up to twice their number, and they are cut at twice what is wanted
    return n * solution + 4 * sizeof(Branch) * std::min(n * values, n + kFewBranches + values);
}

}  // namespace crfkit
