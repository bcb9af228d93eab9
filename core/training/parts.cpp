#include "training/parts.hpp"

namespace crfkit {

void Parts::clear() {
    level_ptr.clear();
    outer.clear();
    level_of.assign(1, -1);
    in_ptr.assign(2, 0);
    source.clear();
    silent.clear();
    for (PartLists* lists : {&factors, &node_factors, &arc_factors}) lists->clear();
    node_factors.open();
    values.clear();
    label.assign(1, -1);
    node_allowed.assign(1, 1);
    arc_allowed.clear();
}

void Parts::begin_level() {
    level_ptr.push_back(n_nodes());
    outer.push_back(n_nodes());
}

std::int64_t Parts::add_node(std::int32_t of_output, bool allowed, bool inner) {
    level_of.push_back(static_cast<std::int64_t>(level_ptr.size()) - 1);
    in_ptr.push_back(n_arcs());
    node_factors.open();
    label.push_back(of_output);
    node_allowed.push_back(allowed);
    if (inner) outer.back() = n_nodes();
    return n_nodes() - 1;
}

void Parts::add_arc(std::int64_t from, bool allowed, bool is_silent) {
    source.push_back(from);
    ++in_ptr.back();
    arc_factors.open();
    arc_allowed.push_back(allowed);
    silent.push_back(is_silent);
}

void Parts::finish(std::int64_t first, std::int64_t last) {
    begin_level();
    add_node(-1);
    for (std::int64_t j = first; j < last; ++j) add_arc(j);
    finish();
}

void Parts::finish() {
    level_ptr.push_back(n_nodes());
    find_oldest();
}

}  // namespace crfkit
