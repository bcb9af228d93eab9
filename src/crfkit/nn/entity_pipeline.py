"""Entities of texts by a transformers encoder with a CRF: texts in, entities with exact probabilities out."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple, overload

import torch
from torch import Tensor

from crfkit.errors import ArgumentError
from crfkit.nn.token_classification import CRFForTokenClassification, word_mask, word_offsets
from crfkit.structures import Span, Threshold

Entity = dict[str, Any]
Input = str | Sequence[str]  # a text, or its words

_SORTED_BATCHES = 16  # so many batches of texts are sorted by length together
_LONGEST = 100_000  # a larger limit of a tokenizer means that it has none


class _Window(NamedTuple):
    """A part of a text that the encoder sees at once."""

    text: int  # its number
    words: list[int]  # [T] the word of each kept piece, numbered in the text
    offsets: list[tuple[int, int]]  # [T] begin and end of each word, in the text
    row: int  # in the encoding


class EntityPipeline:
    """Finds entities in texts, as `transformers.pipeline("token-classification")` does, with the exact probability of each.

    model : a trained `CRFForTokenClassification`
    tokenizer : a fast tokenizer of transformers, which knows the characters of its pieces
    decode, threshold, scheme : which entities, as for `ChainCRF.predict_spans`; by default those of the best label sequence
    batch_size : texts, or parts of long texts, that go through the encoder at once
    stride : pieces by which the parts of a text that is too long for the encoder overlap
    max_length : pieces of a part; None: as many as tokenizer and encoder allow

    An entity is a dict with the keys of transformers: `entity_group` (the label), `score` (the probability of the whole
    entity: its first word, last word and label), `word` (its text), `start` and `end` (characters, or numbers of words where
    a text is a list of words).
    """

    def __init__(
        self,
        model: CRFForTokenClassification,
        tokenizer: Any,
        *,
        decode: str | None = "viterbi",
        threshold: Threshold = "auto",
        scheme: str | None = None,
        batch_size: int = 32,
        stride: int = 64,
        max_length: int | None = None,
    ) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise ArgumentError(
                "tokenizer is not a fast one, expected one that knows the characters of its pieces"
            )
        if batch_size < 1:
            raise ArgumentError(f"batch_size is {batch_size}, expected at least 1")
        self.model = model
        self.tokenizer = tokenizer
        self.decode = decode
        self.threshold = threshold
        self.scheme = scheme
        self.batch_size = batch_size
        self.max_length = _find_limit(model, tokenizer) if max_length is None else max_length
        if self.max_length is not None and not 0 <= stride < self.max_length // 2:
            stride = max(0, min(stride, self.max_length // 2 - 1))
        self.stride = stride

    @overload
    def __call__(self, texts: str) -> list[Entity]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, texts: Iterable[Input]) -> list[list[Entity]]: ...
    def __call__(self, texts: str | Iterable[Input]) -> list[Entity] | list[list[Entity]]:
        """The entities of a text, or of each of several texts, in their order; a text may be a list of its words."""
        if isinstance(texts, str):
            [found] = self.stream([texts])
            return found
        return list(self.stream(texts))

    def stream(self, texts: Iterable[Input]) -> Iterator[list[Entity]]:
        """The entities of each text, as they are found; texts are read a few batches ahead."""
        given = iter(texts)
        while group := list(islice(given, self.batch_size * _SORTED_BATCHES)):
            order = sorted(range(len(group)), key=lambda n: len(group[n]))
            found: list[list[Entity]] = [[] for _ in group]
            for begin in range(0, len(order), self.batch_size):
                numbers = order[begin : begin + self.batch_size]
                answers = self._find([group[n] for n in numbers])
                for n, entities in zip(numbers, answers, strict=True):
                    found[n] = entities
            yield from found

    def _find(self, texts: list[Input]) -> list[list[Entity]]:
        """The entities of a batch of texts, all of one kind or of both."""
        found: list[list[Entity]] = [[] for _ in texts]
        for split in (False, True):
            numbers = [
                n for n, text in enumerate(texts) if (not isinstance(text, str)) == split and len(text)
            ]
            if numbers:
                chosen = [list(text) if split else text for text in (texts[n] for n in numbers)]
                for n, entities in zip(numbers, self._find_alike(chosen, split=split), strict=True):
                    found[n] = entities
        return found

    def _find_alike(self, texts: list[Any], *, split: bool) -> list[list[Entity]]:
        """The entities of texts that are all strings, or all lists of words."""
        limits: dict[str, Any] = {}
        if self.max_length is not None:
            limits = {"truncation": True, "max_length": self.max_length, "stride": self.stride}
            limits["return_overflowing_tokens"] = True
        encoding = self.tokenizer(
            texts,
            is_split_into_words=split,
            return_offsets_mapping=True,
            padding=True,
            return_tensors="pt",
            **limits,
        )
        mask = word_mask(encoding)  # [B, T]; the rest of a word that an earlier part began counts as a word
        windows = _windows(encoding, mask, split=split)
        spans = self._spans(encoding, mask)
        by_text: list[list[_Window]] = [[] for _ in texts]
        for window in windows:
            by_text[window.text].append(window)
        return [
            [_entity(span, text, split=split) for span in _merge(parts, spans)]
            for text, parts in zip(texts, by_text, strict=True)
        ]

    @torch.no_grad()
    def _spans(self, encoding: Any, mask: Tensor) -> list[list[Span]]:
        """The spans of each row of an encoding, in kept pieces."""
        device = next(self.model.parameters()).device
        names = [name for name in ("input_ids", "attention_mask", "token_type_ids") if name in encoding]
        found: list[list[Span]] = [[] for _ in range(len(mask))]
        rows = [row for row in range(len(mask)) if bool(mask[row].any())]
        training = self.model.training
        self.model.eval()
        try:
            for begin in range(0, len(rows), self.batch_size):
                chosen = rows[begin : begin + self.batch_size]
                width = mask.shape[1]
                if getattr(self.tokenizer, "padding_side", "right") == "right":
                    width = int(encoding["attention_mask"][chosen].sum(1).max())
                inputs = {name: encoding[name][chosen, :width].to(device) for name in names}
                answers = self.model.predict_spans(
                    **inputs,
                    word_mask=mask[chosen, :width].to(device),
                    threshold=self.threshold,
                    decode=self.decode,
                    scheme=self.scheme,
                )
                for row, spans in zip(chosen, answers, strict=True):
                    found[row] = spans
        finally:
            self.model.train(training)
        return found


def _find_limit(model: CRFForTokenClassification, tokenizer: Any) -> int | None:
    """The number of pieces that tokenizer and encoder allow; None: any."""
    config = getattr(model.encoder, "config", None)
    limits = [getattr(tokenizer, "model_max_length", None), getattr(config, "max_position_embeddings", None)]
    known = [int(limit) for limit in limits if limit is not None and 0 < limit < _LONGEST]
    return min(known, default=None)


def _windows(encoding: Any, mask: Tensor, *, split: bool) -> list[_Window]:
    """The rows of an encoding as parts of texts."""
    texts = (
        encoding["overflow_to_sample_mapping"].tolist() if "overflow_to_sample_mapping" in encoding else None
    )
    offsets = word_offsets(mask, encoding["offset_mapping"])
    found = []
    for row, kept in enumerate(mask.tolist()):
        ids = encoding.word_ids(row)
        words = [ids[t] for t, first in enumerate(kept) if first]
        places = [(word, word + 1) for word in words] if split else offsets[row]
        found.append(_Window(row if texts is None else texts[row], words, places, row))
    return found


def _merge(windows: Sequence[_Window], spans: Sequence[Sequence[Span]]) -> list[Span]:
    """The spans of a text, in its characters or words: each is taken from the window that has most around its first word.

    Neighbouring windows share some words. The first half of these belongs to the earlier window, the others to the later.
    Of spans that overlap across this border the likelier one stays.
    """
    windows = [window for window in windows if window.words]
    cuts = [(after.words[0] + before.words[-1] + 1) // 2 for before, after in pairwise(windows)]
    found: list[tuple[int, Span]] = []
    for k, window in enumerate(windows):
        first = cuts[k - 1] if k else 0
        last = cuts[k] if k < len(cuts) else window.words[-1] + 1
        found += [
            (k, span.in_characters(window.offsets))
            for span in spans[window.row]
            if first <= window.words[span.start] < last
        ]
    kept: list[tuple[int, Span]] = []
    for k, span in sorted(found, key=lambda pair: -pair[1].probability):
        crossing = (
            other for j, other in kept if j != k and span.start < other.end and other.start < span.end
        )
        if next(crossing, None) is None:
            kept.append((k, span))
    return sorted((span for _, span in kept), key=lambda span: (span.start, span.end, str(span.label)))


def _entity(span: Span, text: Any, *, split: bool) -> Entity:
    words = " ".join(text[span.start : span.end]) if split else text[span.start : span.end]
    return {
        "entity_group": span.label,
        "score": span.probability,
        "word": words,
        "start": span.start,
        "end": span.end,
    }
