// The Python module of the core. Each bind_* function lives in a file of its own beside this one.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "base/processors.hpp"
#include "bindings/bindings.hpp"

NB_MODULE(_core, m) {
    m.doc() = "Numeric core of crfkit: whole-dataset calls on flat arrays.";
    m.def("available_threads", &crfkit::available_processors,
          "Number of processors that this process may use, by its affinity and its control group.");
    m.def("control_group_limit", &crfkit::control_group_limit, nanobind::arg("root"),
          "Processors that the control group allows; 0: no limit. /proc and /sys are looked for in `root`.");
    // Objects that a daemon thread still holds when the interpreter ends are no leak.
    nanobind::set_leak_warnings(false);
    crfkit::bind_vectors(m);
    crfkit::bind_strings(m);
    crfkit::bind_knowledge(m);
    crfkit::bind_extraction(m);
    crfkit::bind_columns(m);
    crfkit::bind_crfsuite(m);
    crfkit::bind_chain(m);
    crfkit::bind_chain_batch(m);
    crfkit::bind_trees(m);
    crfkit::bind_designs(m);
    crfkit::bind_questions(m);
    crfkit::bind_named_positions(m);
    crfkit::bind_column_tagger(m);
    crfkit::bind_parser(m);
    crfkit::bind_second_order(m);
    crfkit::bind_step_rules(m);
    crfkit::bind_lattices(m);
    crfkit::bind_paths(m);
    crfkit::bind_hyperpaths(m);
    crfkit::bind_graphs(m);
    crfkit::bind_approximate(m);
    crfkit::bind_junction_trees(m);
    crfkit::bind_trellis(m);
    crfkit::bind_trellis_questions(m);
    crfkit::bind_losses(m);
    crfkit::bind_factor_losses(m);
    crfkit::bind_output_graphs(m);
    crfkit::bind_segments(m);
    crfkit::bind_segment_batch(m);
    crfkit::bind_word_lattices(m);
}
