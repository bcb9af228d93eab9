// What each binding file adds to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace crfkit {

void bind_vectors(nanobind::module_& m);  // vector kernels of the optimizers
void bind_strings(nanobind::module_& m);  // vocabulary and encoding of Python objects into flat arrays
void bind_named_positions(nanobind::module_& m);  // sequences with names of attributes, and their best labels
void bind_extraction(nanobind::module_& m);       // features by template
void bind_knowledge(nanobind::module_& m);        // lexicons, tables of words, Brown clusters
void bind_columns(nanobind::module_& m);          // column files
void bind_column_tagger(nanobind::module_& m);    // column files tagged in chunks
void bind_crfsuite(nanobind::module_& m);         // model files of CRFsuite
void bind_chain(nanobind::module_& m);            // the questions on one chain
void bind_chain_batch(nanobind::module_& m);      // sums and best labels of many chains
void bind_trees(nanobind::module_& m);            // the questions on spanning trees
void bind_parser(nanobind::module_& m);
void bind_second_order(nanobind::module_& m);  // treebanks: features, training and parsing
void bind_designs(nanobind::module_& m);       // layouts of weights, and designs of data sets
void bind_questions(nanobind::module_& m);   // every question on data sets at the weights of a trained model
void bind_lattices(nanobind::module_& m);    // nodes and arcs with features of their own
void bind_paths(nanobind::module_& m);       // the questions on the paths of any graph
void bind_hyperpaths(nanobind::module_& m);  // the questions on the hyperpaths of any hypergraph
void bind_graphs(nanobind::module_& m);      // factor graphs
void bind_junction_trees(nanobind::module_& m);     // exact inference on them
void bind_approximate(nanobind::module_& m);        // approximate inference on them
void bind_trellis(nanobind::module_& m);            // patterns, and the trellises in which they fire
void bind_output_graphs(nanobind::module_& m);      // graphs of label sequences, and data sets of such
void bind_segments(nanobind::module_& m);           // semi-Markov chains
void bind_segment_batch(nanobind::module_& m);      // many semi-Markov chains of plain scores
void bind_word_lattices(nanobind::module_& m);      // data sets of word lattices
void bind_factor_losses(nanobind::module_& m);      // factor graphs with tied weights
void bind_losses(nanobind::module_& m);             // losses of data sets, and the objective
void bind_trellis_questions(nanobind::module_& m);  // the questions on one of them
void bind_step_rules(nanobind::module_& m);         // stochastic training methods

}  // namespace crfkit
