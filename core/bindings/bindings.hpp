// What each binding file adds to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace crfkit {

void bind_vectors(nanobind::module_& m);  // vector kernels of the optimizers
void bind_strings(nanobind::module_& m);  // vocabulary and encoding of Python objects into flat arrays
void bind_named_positions(nanobind::module_& m);  // sequences with names of attributes, and their best labels
void bind_extraction(nanobind::module_& m);       // features by template
void bind_crfsuite(nanobind::module_& m);         // model files of CRFsuite
void bind_chain(nanobind::module_& m);            // the questions on one chain
void bind_chain_batch(nanobind::module_& m);      // sums and best labels of many chains
void bind_trees(nanobind::module_& m);            // the questions on spanning trees
void bind_parser(nanobind::module_& m);           // treebanks: features, training and parsing
void bind_objective(nanobind::module_& m);  // value, gradient, Hessian–vector product of a whole data set
void bind_questions(nanobind::module_& m);  // every question on data sets at the weights of a trained model
void bind_lattices(nanobind::module_& m);   // the same for nodes and arcs with features of their own
void bind_paths(nanobind::module_& m);      // the questions on the paths of any graph
void bind_trellis(nanobind::module_& m);    // patterns, and the trellises in which they fire
void bind_trellis_questions(nanobind::module_& m);  // the questions on one of them
void bind_partition(nanobind::module_& m);          // how large trellises are, as seed 002 counts
void bind_online(nanobind::module_& m);             // mistake-driven passes over a whole dataset
void bind_patterns(nanobind::module_& m);           // training and tagging with them
void bind_step_rules(nanobind::module_& m);         // stochastic training methods

}  // namespace crfkit
