"""Spans of new input with their exact probabilities, as `CRF.predict_spans` gives them."""

from crfkit.features import path_spans
from crfkit.inference import likely_spans, select_spans
from crfkit.models.encoded_input import EncodedInput
from crfkit.structures import Span, SpanLabels


def find_spans(
    ask: EncodedInput, labels: SpanLabels | None, threshold: float | None, decode: str | None
) -> list[list[Span]]:
    """The spans of each sequence: above a threshold, of the best labels, or with the highest expected F1.

    `labels` says how labels are read as spans; None: outputs are lists of arcs.
    """
    if labels is None:
        return _find_arcs(ask, threshold, decode)
    given = (ask.design, labels)
    with ask.explain_impossible():
        return select_spans(
            lambda least: ask.answerer.spans(*given, least, ask.n_threads),
            lambda: ask.answerer.decoded_spans(*given, ask.n_threads),
            lambda: float(ask.answerer.n_spans(*given, ask.n_threads).sum()),
            threshold,
            decode,
        )


def _find_arcs(ask: EncodedInput, threshold: float | None, decode: str | None) -> list[list[Span]]:
    """The same of word lattices: arcs with equal ends and labels are one span."""
    with ask.explain_impossible():
        on_path = ask.answerer.marginals(ask.design, ask.n_threads)[:, 1]
    everything = path_spans(on_path, ask.dataset)

    def decoded() -> list[list[Span]]:
        with ask.explain_impossible():
            labels = ask.model.decode(ask.answerer.decode(ask.design, ask.n_threads), ask.dataset)
        paths = map(set, ask.model.convert_outputs(labels, ask.dataset))
        pairs = zip(everything, paths, strict=True)
        return [[span for span in some if span[:3] in path] for some, path in pairs]

    return select_spans(
        lambda least: likely_spans(everything, least),
        decoded,
        lambda: float(on_path.sum()),
        threshold,
        decode,
    )
