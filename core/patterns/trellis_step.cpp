#include "patterns/trellis_step.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

namespace crfkit {
namespace {

// Labels that are left together: through a pool by all sources that are no exception for any of them, and
// directly by the others; or directly by all sources.
struct PoolBlock {
    bool pooled;
    std::vector<std::int32_t> labels;
};

// Cuts labels into blocks so that few arcs are needed. exceptions[c] lists the sources, 0..n_sources − 1,
// whose outcome of label c is not the common one, ascending. A block of k labels with u exceptions in all
// costs
//   n · k arcs directly,      (n − u) + k + u · k through a pool
// and the cut is the best one of the labels in the order of their number of exceptions.
std::vector<PoolBlock> plan_pools(std::int64_t n_sources,
                                  const std::vector<std::vector<std::int32_t>>& exceptions) {
    const std::size_t n = exceptions.size();
    std::vector<std::int32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    if (n_sources < 2) return {{false, order}};
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return exceptions[a].size() != exceptions[b].size() ? exceptions[a].size() < exceptions[b].size()
                                                            : exceptions[a] < exceptions[b];
    });
    // cost[j]: of the first j labels; the last of their blocks begins at begin[j].
    std::vector<std::int64_t> cost(n + 1, 0);
    std::vector<std::size_t> begin(n + 1, 0);
    std::vector<std::uint8_t> pooled(n + 1, 0);
    for (std::size_t j = 1; j <= n; ++j) cost[j] = n_sources * static_cast<std::int64_t>(n) + 1;
    std::vector<std::size_t> met(static_cast<std::size_t>(n_sources), n);  // the block that met it last
    for (std::size_t i = 0; i < n; ++i) {
        if (const std::int64_t direct = cost[i] + n_sources; direct < cost[i + 1]) {
            cost[i + 1] = direct;
            begin[i + 1] = i;
            pooled[i + 1] = 0;
        }
        std::int64_t u = 0;
        for (std::size_t j = i; j < n && u < n_sources; ++j) {
            for (const std::int32_t source : exceptions[order[j]]) {
                u += met[source] != i;
                met[source] = i;
            }
            const auto k = static_cast<std::int64_t>(j + 1 - i);
            if (const std::int64_t total = cost[i] + n_sources - u + k + u * k; total < cost[j + 1]) {
                cost[j + 1] = total;
                begin[j + 1] = i;
                pooled[j + 1] = 1;
            }
        }
    }
    std::vector<PoolBlock> blocks;
    for (std::size_t j = n; j > 0; j = begin[j]) {
        PoolBlock block{pooled[j] != 0, {order.begin() + begin[j], order.begin() + j}};
        std::sort(block.labels.begin(), block.labels.end());
        blocks.push_back(std::move(block));
    }
    std::reverse(blocks.begin(), blocks.end());
    return blocks;
}

// (value, value) as integers that can stand in a list.
void push_halves(double value, std::vector<std::int32_t>& list) {
    const auto halves = std::bit_cast<std::array<std::int32_t, 2>>(value);
    list.insert(list.end(), halves.begin(), halves.end());
}

struct Element {
    std::int32_t state, value, count;
    auto operator<=>(const Element&) const = default;
};

// Sorted, with equal (state, value) counted together.
std::vector<Element> united(const std::vector<std::int32_t>& list) {
    std::vector<Element> elements;
    for (std::size_t i = 0; i < list.size(); i += 3) elements.push_back({list[i], list[i + 1], list[i + 2]});
    std::sort(elements.begin(), elements.end());
    std::size_t kept = 0;
    for (std::size_t i = 0; i < elements.size(); ++i) {
        if (kept > 0 && elements[kept - 1].state == elements[i].state &&
            elements[kept - 1].value == elements[i].value)
            elements[kept - 1].count += elements[i].count;
        else
            elements[kept++] = elements[i];
    }
    elements.resize(kept);
    return elements;
}

}  // namespace

StepMaker::StepMaker(const StepMaterial& material)
    : material_(material),
      place_(static_cast<std::size_t>(material.matcher.n_labels), -1),
      useful_(static_cast<std::size_t>(material.matcher.n_states()), 0) {}

// A node of the trellis is a label and what is alive after it: the multiset of automaton states of all
// patterns that have begun and may still be completed. From a node, label b leads to
//   alive' = { δ(q, b) : q in alive ∪ starts },      active = the patterns that some δ(q, b) completes,
// where δ is the automaton of all patterns (matcher.hpp). `active` are the features of the arc. What cannot
// be completed any more is not in `useful` and is dropped, so that more label sequences share a node.
MadeStep StepMaker::make(const StepKey& key, const TrellisLimits& limits) {
    step_ = MadeStep{};
    step_.alive.add({});
    step_.n_before = static_cast<std::int32_t>(material_.levels[key.level].size() / 2);
    if (key.last == 2) {
        make_sink();
        return std::move(step_);
    }
    read_starts(key);
    link(key, true, limits);
    if (!material_.linked()) {  // then what is alive says all: perhaps there are fewer arcs
        StepLinks by_label = std::exchange(static_cast<StepLinks&>(step_), StepLinks{});
        link(key, false, limits);
        const auto better = [](const StepLinks& one, const StepLinks& other) {
            return !one.too_large && (other.too_large || one.arcs.size() < other.arcs.size());
        };
        if (better(by_label, step_)) static_cast<StepLinks&>(step_) = std::move(by_label);
    }
    for (const std::int32_t label : labels_) place_[label] = -1;
    for (const std::int32_t state : material_.state_sets[key.useful]) useful_[state] = 0;
    return std::move(step_);
}

// All arcs, through pools for the nodes of one label, or for those with the same alive.
void StepMaker::link(const StepKey& key, bool by_label, const TrellisLimits& limits) {
    nodes_.clear();
    const auto level = material_.levels[key.level];
    const auto group = [&](std::int32_t i) { return level[2 * i + (by_label ? 0 : 1)]; };
    std::vector<std::int32_t> order(static_cast<std::size_t>(step_.n_before));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int32_t i, std::int32_t j) { return group(i) < group(j); });
    for (std::size_t begin = 0; begin < order.size() && !step_.too_large;) {
        std::size_t end = begin + 1;
        while (end < order.size() && group(order[end]) == group(order[begin])) ++end;
        step_.too_large = !link_group(key, std::span(order).subspan(begin, end - begin), limits);
        begin = end;
    }
    // Destinations were counted from 0, pools downwards; now it is known how many pools there are.
    for (StepArc& arc : step_.arcs)
        arc.destination = arc.destination < 0 ? step_.n_before - 1 - arc.destination
                                              : step_.n_before + step_.n_pools + arc.destination;
}

void StepMaker::make_sink() {
    step_.node_labels.push_back(-1);
    step_.node_alive.push_back(0);
    for (std::int32_t i = 0; i < step_.n_before; ++i) step_.arcs.push_back({i, step_.n_before, -1, -1});
    step_.n_transitions = step_.n_before;
}

void StepMaker::read_starts(const StepKey& key) {
    const auto labels = material_.label_sets[key.labels];
    labels_.assign(labels.begin(), labels.end());
    for (std::size_t c = 0; c < labels_.size(); ++c) place_[labels_[c]] = static_cast<std::int32_t>(c);
    for (const std::int32_t state : material_.state_sets[key.useful]) useful_[state] = 1;
    last_ = key.last != 0;
    arrivals_.clear();
    outcomes_.clear();
    rows_.clear();
    row_of_.clear();
    arrived_.assign(labels_.size(), {});
    from_starts_.assign(labels_.size(), {});
    follow(material_.alive[key.starts], from_starts_, nullptr);
    plain_.clear();
    for (const Elements& arrived : from_starts_) plain_.push_back(outcome(arrived));
}

// Where elements go on each label that they read: δ(q, b) for all q of a multiset and all labels b.
void StepMaker::follow(std::span<const std::int32_t> elements, std::vector<Elements>& arrivals,
                       std::vector<std::int32_t>* touched) const {
    const PatternMatcher& matcher = material_.matcher;
    for (std::size_t i = 0; i < elements.size(); i += 3)
        for (std::int64_t edge = matcher.out_ptr[elements[i]]; edge < matcher.out_ptr[elements[i] + 1];
             ++edge)
            for (const std::int32_t label : matcher.labels_of(matcher.out_set[edge])) {
                const std::int32_t c = place_[label];
                if (c < 0) continue;
                if (touched && arrivals[c].empty()) touched->push_back(c);
                arrivals[c].insert(arrivals[c].end(),
                                   {matcher.out_next[edge], elements[i + 1], elements[i + 2]});
            }
}

// The row of an alive set: what each label leads to.
std::size_t StepMaker::read_alive(std::int32_t alive) {
    const auto [known, is_new] = row_of_.try_emplace(alive, rows_.size());
    if (!is_new) return known->second;
    rows_.push_back(plain_);
    std::vector<std::int32_t> touched;
    follow(material_.alive[alive], arrived_, &touched);
    for (const std::int32_t c : touched) {
        Elements& arrived = arrived_[c];
        arrived.insert(arrived.end(), from_starts_[c].begin(), from_starts_[c].end());
        rows_.back()[c] = outcome(arrived);
        arrived.clear();
    }
    return rows_.size() - 1;
}

// The multiset after a label, divided into what is active and what stays alive. Equal (state, value) are
// counted together; the value of a completed pattern is Σ value · count.
StepMaker::Outcome StepMaker::outcome(const Elements& arrived) {
    if (arrived.empty()) return {0, -1};
    const std::int32_t place = arrivals_.add(arrived);
    if (place < static_cast<std::int32_t>(outcomes_.size())) return outcomes_[place];
    const PatternMatcher& matcher = material_.matcher;
    std::vector<std::pair<std::int32_t, double>> active;
    std::vector<std::int32_t> alive, list;
    for (const auto& [state, value, count] : united(arrived)) {
        if (matcher.activates[state] >= 0 && (last_ || !matcher.last_only[state]))
            active.emplace_back(matcher.activates[state], material_.values[value] * count);
        if (useful_[state]) alive.insert(alive.end(), {state, value, count});
    }
    std::sort(active.begin(), active.end());
    for (std::size_t i = 0; i < active.size();) {
        const std::int32_t weight = active[i].first;
        double sum = 0;
        for (; i < active.size() && active[i].first == weight; ++i) sum += active[i].second;
        if (sum == 0) continue;
        list.push_back(weight);
        push_halves(sum, list);
    }
    outcomes_.push_back({step_.alive.add(alive), list.empty() ? -1 : step_.active.add(list)});
    return outcomes_.back();
}

std::int32_t StepMaker::find_node(std::int32_t label, std::int32_t alive) {
    const std::int32_t node[] = {material_.cells ? -1 : label, alive};
    const std::int32_t place = nodes_.add(node);
    if (place == static_cast<std::int32_t>(step_.node_labels.size())) {
        step_.node_labels.push_back(node[0]);
        step_.node_alive.push_back(alive);
    }
    return place;
}

// Whether a label may be read after `before` (−1: at the beginning), and the number of the arc between them.
bool StepMaker::exists(std::int32_t before, std::int32_t label, std::int32_t& arc) const {
    arc = -1;
    if (before < 0) return true;
    const Bigrams& bigrams = material_.bigrams;
    arc = material_.backwards ? bigrams.find(label, before) : bigrams.find(before, label);
    return arc >= 0 || bigrams.soft;
}

// How many different arcs leave a node: one for each label, or for each outcome of labels that count as
// one.
std::int64_t StepMaker::count_transitions(const std::vector<Outcome>& row,
                                          const std::vector<std::size_t>& possible) const {
    if (!material_.cells) return static_cast<std::int64_t>(possible.size());
    std::vector<std::pair<std::int32_t, std::int32_t>> outcomes;
    for (const std::size_t c : possible) outcomes.emplace_back(row[c].alive, row[c].active);
    std::sort(outcomes.begin(), outcomes.end());
    return std::unique(outcomes.begin(), outcomes.end()) - outcomes.begin();
}

// The outcome of label c that most rows have, the first of them where several do.
StepMaker::Outcome StepMaker::common_outcome(std::span<const std::size_t> rows, std::size_t c) const {
    const Outcome first = rows_[rows[0]][c];
    if (std::ranges::all_of(rows, [&](std::size_t row) { return rows_[row][c] == first; })) return first;
    std::vector<std::pair<std::int32_t, std::int32_t>> sorted;
    for (const std::size_t row : rows) sorted.emplace_back(rows_[row][c].alive, rows_[row][c].active);
    std::sort(sorted.begin(), sorted.end());
    std::size_t most = 0;
    Outcome common{};
    for (std::size_t i = 0; i < sorted.size();) {
        const std::size_t begin = i;
        while (i < sorted.size() && sorted[i] == sorted[begin]) ++i;
        if (i - begin > most) common = {sorted[begin].first, sorted[begin].second};
        most = std::max(most, i - begin);
    }
    return common;
}

// The arcs out of nodes that may share pools; false where there are too many. n nodes that go on alike on m
// labels need n · m arcs, or n + m through one inner node, a pool; nodes that differ on a label have an arc
// of their own for it. Destinations are counted from 0: −1 − p is pool p.
bool StepMaker::link_group(const StepKey& key, std::span<const std::int32_t> nodes,
                           const TrellisLimits& limits) {
    const auto level = material_.levels[key.level];
    const std::int32_t before = level[2 * nodes[0]];
    std::vector<std::size_t> rows;
    for (const std::int32_t i : nodes) rows.push_back(read_alive(level[2 * i + 1]));
    std::vector<std::size_t> possible;  // places in labels_
    std::vector<std::int32_t> arcs;
    std::vector<Outcome> common;
    std::vector<std::vector<std::int32_t>> exceptions;
    for (std::size_t c = 0; c < labels_.size(); ++c) {
        std::int32_t arc;
        if (!exists(before, labels_[c], arc)) continue;
        possible.push_back(c);
        arcs.push_back(arc);
        common.push_back(common_outcome(rows, c));
        exceptions.emplace_back();
        for (std::size_t k = 0; k < rows.size(); ++k)
            if (rows_[rows[k]][c] != common.back()) exceptions.back().push_back(static_cast<std::int32_t>(k));
    }
    for (const std::size_t row : rows) step_.n_transitions += count_transitions(rows_[row], possible);
    std::vector<std::uint8_t> excepted(nodes.size());
    const auto link = [&](std::int32_t source, std::int32_t place, const Outcome& to) {
        const std::int32_t node = find_node(labels_[possible[place]], to.alive);
        step_.arcs.push_back({source, node, arcs[place], to.active});
    };
    for (const auto& [pooled, places] : plan_pools(static_cast<std::int64_t>(nodes.size()), exceptions)) {
        std::fill(excepted.begin(), excepted.end(), !pooled);
        if (pooled) {
            for (const std::int32_t place : places)
                for (const std::int32_t k : exceptions[place]) excepted[k] = 1;
            for (std::size_t k = 0; k < nodes.size(); ++k)
                if (!excepted[k]) step_.arcs.push_back({nodes[k], -1 - step_.n_pools, -1, -1});
            for (const std::int32_t place : places)
                link(step_.n_before + step_.n_pools, place, common[place]);
            ++step_.n_pools;
        }
        for (const std::int32_t place : places)
            for (std::size_t k = 0; k < nodes.size(); ++k)
                if (excepted[k]) link(nodes[k], place, rows_[rows[k]][possible[place]]);
        if (static_cast<std::int64_t>(step_.node_labels.size()) > limits.max_states ||
            static_cast<std::int64_t>(step_.arcs.size()) > limits.max_arcs)
            return false;
    }
    return true;
}

SortedStep sort_step(std::int32_t before, std::int32_t after, const MadeStep& made, bool backwards) {
    const auto n_after = static_cast<std::int32_t>(made.node_labels.size());
    SortedStep out;
    Step& step = out.step;
    step = {before, after, made.n_before, made.n_pools, n_after, false, 0, 0, 0, 0, made.n_transitions};
    std::vector<StepArc> arcs = made.arcs;
    if (backwards) {
        step = {after, before, n_after, made.n_pools, made.n_before, true, 0, 0, 0, 0, made.n_transitions};
        const auto turned = [&](std::int32_t node) {
            if (node < made.n_before) return n_after + made.n_pools + node;
            node -= made.n_before;
            return node < made.n_pools ? n_after + node : node - made.n_pools;
        };
        for (StepArc& arc : arcs) {
            const std::int32_t source = arc.source;
            arc.source = turned(arc.destination);
            arc.destination = turned(source);
        }
    }
    step.n_arcs = static_cast<std::int64_t>(arcs.size());
    std::sort(arcs.begin(), arcs.end(), [](const StepArc& a, const StepArc& b) {
        return std::pair(a.destination, a.source) < std::pair(b.destination, b.source);
    });
    out.in_ptr.assign(static_cast<std::size_t>(step.n_destinations()) + 1, 0);
    out.out_ptr.assign(static_cast<std::size_t>(step.n_sources()) + 1, 0);
    for (const StepArc& arc : arcs) {
        out.source.push_back(arc.source);
        out.destination.push_back(arc.destination);
        out.arc.push_back(arc.arc);
        out.active.push_back(arc.active);
        ++out.in_ptr[arc.destination - step.n_before + 1];
        ++out.out_ptr[arc.source + 1];
    }
    std::partial_sum(out.in_ptr.begin(), out.in_ptr.end(), out.in_ptr.begin());
    std::partial_sum(out.out_ptr.begin(), out.out_ptr.end(), out.out_ptr.begin());
    out.out_arc.resize(arcs.size());
    std::vector<std::int32_t> next(out.out_ptr.begin(), out.out_ptr.end() - 1);
    for (std::size_t e = 0; e < arcs.size(); ++e)
        out.out_arc[next[arcs[e].source]++] = static_cast<std::int32_t>(e);
    return out;
}

}  // namespace crfkit
