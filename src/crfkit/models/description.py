"""A trained model as plain values: labels, sizes, settings, training, and what its weights say."""

from typing import Any

import numpy as np

from crfkit.models.crf import CRF
from crfkit.models.inspection import (
    heaviest_features,
    heaviest_of_structure,
    heaviest_outputs,
    heaviest_patterns,
    heaviest_transition_features,
    transition_weights,
)
from crfkit.models.parser import Parser
from crfkit.structures import END, START, Bigrams


def describe(model: CRF[Any] | Parser, n_features: int = 10) -> dict[str, Any]:
    """What is in a trained model, as JSON values: what `crfkit inspect` shows.

    `n_features` are listed for each label, of transitions, of feature functions and of patterns, heaviest first. The
    features of a parser are known by keys, not by names: of these there are counts.
    """
    return _parser(model) if isinstance(model, Parser) else _crf(model, n_features)


def _crf(model: CRF[Any], n_features: int) -> dict[str, Any]:
    feature_map = model.feature_map_
    n_patterns, n_structure = len(model.pattern_names_), len(model.structure_names_)
    return {
        "type": "CRF",
        "labels": [str(label) for label in model.classes_],
        **({} if model.span_states_ is None else {"states": list(model.states_)}),
        "normalised": "at each position" if model.locally_normalised_ else "over the sequence",
        "sizes": {
            "features": model.n_features_,
            "weights": len(model.weights_),
            "state weights": feature_map.n_pairs,
            "dense weights": feature_map.arcs_begin - feature_map.n_pairs,
            "transition weights": feature_map.triples_begin - feature_map.arcs_begin,
            "transition feature weights": feature_map.n_weights - feature_map.triples_begin,
            "feature function weights": len(model.weights_)
            - feature_map.n_weights
            - n_patterns
            - n_structure,
            "pattern weights": n_patterns,
            "structure weights": n_structure,
        },
        **_settings_and_training(model),
        "heaviest features": {
            str(label): [[name, weight] for name, weight in heaviest_features(model, label, n_features)]
            for label in model.classes_
        },
        "heaviest transition features": [
            [feature, str(before), str(after), weight]
            for feature, before, after, weight in heaviest_transition_features(model, n_features)
        ],
        "heaviest outputs": [[name, weight] for name, weight in heaviest_outputs(model, n_features)],
        "heaviest patterns": [[name, weight] for name, weight in heaviest_patterns(model, n_features)],
        "heaviest of structure": [
            [name, weight] for name, weight in heaviest_of_structure(model, n_features)
        ],
        "transitions": [
            [_plain(before), _plain(after), weight] for before, after, weight in transition_weights(model)
        ],
        "bigrams": _bigrams(model),
    }


def _parser(model: Parser) -> dict[str, Any]:
    arc_map, weights = model._get_model().arc_map, model.weights_
    n_arcs, layout = arc_map.n_arc_features, arc_map.layout
    labels = layout.pair_labels
    of_labels = weights[n_arcs : n_arcs + len(labels)]
    counts = np.bincount(labels, minlength=len(arc_map.labels))
    squares = np.bincount(labels, weights=of_labels**2, minlength=len(arc_map.labels))
    return {
        "type": "Parser",
        "labels": list(arc_map.labels),
        "sizes": {
            "features": n_arcs + len(layout.label_keys),
            "weights": len(weights),
            "arc weights": n_arcs,
            "label weights": len(of_labels),
            **({"vector weights": layout.vectors.n_weights} if arc_map.vector_size else {}),
        },
        **_settings_and_training(model),
        "weights of labels": {
            label: [int(count), float(np.sqrt(square))]
            for label, count, square in zip(arc_map.labels, counts, squares, strict=True)
        },
    }


def _settings_and_training(model: CRF[Any] | Parser) -> dict[str, Any]:
    return {
        "settings": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
        "training": {
            "iterations": model.n_iter_,
            "stopped because": model.stop_message_,
            "objective": model.history_[-1].objective if model.history_ else None,
        },
    }


def _bigrams(model: CRF[Any]) -> dict[str, Any] | None:
    """The pairs of labels, or of types of segments, that exist, START and END as None, and their picture; None: all."""
    bigrams = model.structure_.bigrams
    if not isinstance(bigrams, Bigrams):
        return None
    pairs = [[None if label in (START, END) else _plain(label) for label in pair] for pair in bigrams]
    return {"unseen": model.structure_.chain.unseen, "pairs": pairs, "picture": str(bigrams)}


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float | dict) else str(value)
