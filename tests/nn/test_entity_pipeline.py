"""`crfkit.nn.EntityPipeline`: entities of texts with exact probabilities, by a tokenizer of its own and by transformers."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crfkit.errors import ArgumentError

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from torch import nn

from crfkit.nn import CRFForTokenClassification, EntityPipeline, word_mask

LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
TEXTS = ["Ann Lee saw Rome.", "", "  ", "Tom", "Ann, Tom and Sue left New  York for Rome."]


class Encoder(nn.Module):
    """Embeddings and a convolution over few neighbours: parts of a text that are far from their ends score as the whole."""

    def __init__(self, limit: int | None = None) -> None:
        super().__init__()
        self.embedding = nn.Embedding(500, 6)
        self.convolution = nn.Conv1d(6, len(LABELS), 3, padding=1)
        self.config = SimpleNamespace(id2label=dict(enumerate(LABELS)), max_position_embeddings=limit)
        self.widths: list[tuple[int, ...]] = []

    def forward(self, input_ids: Any, attention_mask: Any = None) -> Any:
        self.widths.append(tuple(input_ids.shape))
        return SimpleNamespace(logits=2 * self.convolution(self.embedding(input_ids).mT).mT)


class Encoding(dict[str, Any]):
    """What the tokenizer below gives, with the methods of transformers."""

    def __init__(self, rows: list[list[tuple[int, int | None, int, int]]], samples: list[int] | None) -> None:
        width = max(map(len, rows))
        padded = [row + [(0, None, 0, 0)] * (width - len(row)) for row in rows]
        super().__init__(
            input_ids=torch.tensor([[piece for piece, *_ in row] for row in padded]),
            attention_mask=torch.tensor([[int(t < len(row)) for t in range(width)] for row in rows]),
            offset_mapping=torch.tensor([[[begin, end] for *_, begin, end in row] for row in padded]),
        )
        if samples is not None:
            self["overflow_to_sample_mapping"] = torch.tensor(samples)
        self._words = [[word for _, word, _, _ in row] for row in padded]

    def word_ids(self, row: int) -> list[int | None]:
        return self._words[row]


class Tokenizer:
    """Pieces of up to three letters; [CLS] is 1, [SEP] is 2."""

    is_fast = True
    padding_side = "right"
    model_max_length = 10**30

    def __call__(
        self,
        texts: list[Any],
        *,
        is_split_into_words: bool,
        return_offsets_mapping: bool,
        padding: bool,
        return_tensors: str,
        truncation: bool = False,
        max_length: int | None = None,
        stride: int = 0,
        return_overflowing_tokens: bool = False,
    ) -> Encoding:
        assert (return_offsets_mapping, padding, return_tensors) == (True, True, "pt")
        rows, samples = [], []
        for sample, text in enumerate(texts):
            pieces = list(self.pieces(text, is_split_into_words))
            step = len(pieces) if max_length is None else max_length - 2
            begin = 0
            while True:
                special = (1, None, 0, 0), (2, None, 0, 0)
                rows.append([special[0], *pieces[begin : begin + step], special[1]])
                samples.append(sample)
                if begin + step >= len(pieces):
                    break
                begin += step - stride
        return Encoding(rows, samples if return_overflowing_tokens else None)

    @staticmethod
    def pieces(text: Any, split: bool) -> Any:
        if split:
            words = [(word, 0) for word in text]
        else:
            words = [(found[0], found.start()) for found in re.finditer(r"\w+|[^\w\s]", text)]
        for number, (word, at) in enumerate(words):
            for k in range(0, len(word), 3):
                piece = word[k : k + 3]
                yield 3 + sum(map(ord, piece)) % 497, number, at + k, at + k + len(piece)


def model_of(limit: int | None = None) -> CRFForTokenClassification:
    torch.manual_seed(3)
    return CRFForTokenClassification(Encoder(limit), bigrams="bio").eval()


def word_scores(model: CRFForTokenClassification, text: str) -> tuple[Any, list[tuple[int, int]]]:
    """The emissions of the words of a text, and where these stand."""
    pieces = list(Tokenizer.pieces(text, False))
    ids = torch.tensor([[1, *(piece for piece, *_ in pieces), 2]])
    first = [t for t, piece in enumerate(pieces) if t == 0 or piece[1] != pieces[t - 1][1]]
    scores = model.encoder(ids).logits[0, [t + 1 for t in first]].detach().double()
    ends = [*first[1:], len(pieces)]
    return scores, [(pieces[a][2], pieces[b - 1][3]) for a, b in zip(first, ends, strict=True)]


def span_probabilities(model: CRFForTokenClassification, text: str) -> dict[tuple[int, int, str], float]:
    """Every entity that a text may have, by enumeration of all label sequences."""
    scores, places = word_scores(model, text)
    crf = model.crf
    transitions, start, end = (
        part.detach().double() for part in (crf.transitions, crf.start_transitions, crf.end_transitions)
    )
    totals: dict[tuple[int, int, str], float] = {}
    z = 0.0
    for tags in itertools.product(range(len(LABELS)), repeat=len(places)):
        names = [LABELS[tag] for tag in tags]
        follows = zip(["O", *names], names, strict=False)
        if any(b[0] == "I" and (a == "O" or a[1:] != b[1:]) for a, b in follows):
            continue
        score = float(start[tags[0]] + end[tags[-1]])
        score += sum(float(scores[t, tag]) for t, tag in enumerate(tags))
        score += sum(float(transitions[a, b]) for a, b in itertools.pairwise(tags))
        weight = math.exp(score)
        z += weight
        begin = 0
        for t, name in enumerate(names):
            if name[0] == "B":
                begin = t
            if name != "O" and (t + 1 == len(names) or names[t + 1][0] != "I"):
                key = (places[begin][0], places[t][1], name[2:])
                totals[key] = totals.get(key, 0.0) + weight
    return {key: value / z for key, value in totals.items()}


def triple(entity: dict[str, Any]) -> tuple[int, int, str]:
    return entity["start"], entity["end"], entity["entity_group"]


def test_probabilities_are_those_of_all_label_sequences() -> None:
    model = model_of()
    find_all = EntityPipeline(model, Tokenizer(), decode=None, threshold=0.02)
    for text in ("Ann Lee saw Rome.", "Tom", "Rome, Ann Lee"):
        expected = {key: p for key, p in span_probabilities(model, text).items() if p >= 0.02}
        found = find_all(text)
        assert {triple(entity): entity["score"] for entity in found} == pytest.approx(expected, rel=1e-5)
        assert all(entity["word"] == text[entity["start"] : entity["end"]] for entity in found)


def test_entities_of_the_best_labels() -> None:
    model = model_of()
    pipeline = EntityPipeline(model, Tokenizer())
    every = EntityPipeline(model, Tokenizer(), decode=None, threshold=0.001)
    for text in TEXTS:
        likely = {triple(entity): entity["score"] for entity in every(text)}
        for entity in pipeline(text):
            assert entity["score"] == pytest.approx(likely[triple(entity)])
    assert any(pipeline(text) for text in TEXTS)


@pytest.mark.parametrize("batch_size", [1, 2, 32])
def test_batches_keep_the_order_of_texts(batch_size: int) -> None:
    pipeline = EntityPipeline(model_of(), Tokenizer(), batch_size=batch_size, decode=None, threshold=0.05)
    texts = [text * k for k in (1, 2) for text in TEXTS] * 3
    together = pipeline(texts)
    assert list(pipeline.stream(iter(texts))) == together
    for text, found in zip(texts, together, strict=True):
        alone = pipeline(text)
        assert [triple(entity) for entity in found] == [triple(entity) for entity in alone]
        scores = [entity["score"] for entity in alone]
        assert [entity["score"] for entity in found] == pytest.approx(scores, rel=1e-5)
    assert pipeline([]) == []
    assert all(rows <= batch_size for rows, _ in pipeline.model.encoder.widths)


def test_lists_of_words() -> None:
    pipeline = EntityPipeline(model_of(), Tokenizer(), decode=None, threshold=0.05)
    words = ["Ann", "Lee", "saw", "Rome", "."]
    text = "Ann Lee saw Rome."
    begins = [0, 4, 8, 12, 16]
    [by_words], [by_text] = pipeline([words]), pipeline([text])
    assert len(by_words) == len(by_text) > 0
    for a, b in zip(by_words, by_text, strict=True):
        assert begins[a["start"]] == b["start"]
        assert a["score"] == pytest.approx(b["score"], rel=1e-5)
        assert a["word"] == " ".join(words[a["start"] : a["end"]])
    assert pipeline([text, words, []]) == [pipeline(text), pipeline([words])[0], []]


def test_long_texts_are_read_in_parts_that_overlap() -> None:
    """An encoder that looks at few neighbours scores a word alike in every part that has these; transitions are weak."""
    text = "Ann Lee saw Rome, Tom and Sue left New York for Paris. " * 12
    whole = EntityPipeline(model_of(), Tokenizer())
    parts = EntityPipeline(model_of(limit=40), Tokenizer(), stride=16)
    assert parts.max_length == 40
    expected, found = whole(text), parts(text)
    assert parts.model.encoder.widths[-1][0] > 5
    assert parts.model.encoder.widths[-1][1] == 40
    assert [triple(entity) for entity in found] == [triple(entity) for entity in expected]
    assert [e["score"] for e in found] == pytest.approx([e["score"] for e in expected], abs=0.02)
    assert [triple(e) for e in parts([text, "Tom"])[1]] == [triple(e) for e in parts("Tom")]


def test_a_word_longer_than_a_part() -> None:
    pipeline = EntityPipeline(model_of(limit=10), Tokenizer(), stride=2, decode=None, threshold=0.01)
    found = pipeline("x" * 200 + " Rome " + "y" * 90)
    assert all(0 <= e["start"] < e["end"] <= 296 for e in found)


def test_the_model_keeps_its_mode() -> None:
    model = model_of()
    model.train()
    EntityPipeline(model, Tokenizer())("Ann")
    assert model.training


def test_bad_arguments() -> None:
    slow = Tokenizer()
    slow.is_fast = False
    with pytest.raises(ArgumentError, match="tokenizer is not a fast one"):
        EntityPipeline(model_of(), slow)
    with pytest.raises(ArgumentError, match="batch_size is 0"):
        EntityPipeline(model_of(), Tokenizer(), batch_size=0)


@pytest.mark.filterwarnings("ignore")
def test_with_a_tiny_bert(tmp_path: Path) -> None:
    transformers: Any = pytest.importorskip("transformers", reason="transformers is not installed")
    torch.manual_seed(0)
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        "ann",
        "lee",
        "saw",
        "rome",
        "tom",
        "new",
        "york",
        "##s",
        ".",
    ]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    tokenizer = transformers.BertTokenizerFast(str(tmp_path / "vocab.txt"), model_max_length=16)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
        id2label=dict(enumerate(LABELS)),
        label2id={label: number for number, label in enumerate(LABELS)},
    )
    encoder = transformers.BertForTokenClassification(config)
    model = CRFForTokenClassification(encoder, bigrams="bio").eval()
    pipeline = EntityPipeline(model, tokenizer, decode=None, threshold=0.05, stride=4)
    text = "Ann Lee saw Romes."
    [found] = pipeline([text])
    encoding = tokenizer([text], return_offsets_mapping=True, return_tensors="pt")
    spans = model.predict_spans(
        encoding["input_ids"],
        encoding["attention_mask"],
        word_mask(encoding),
        offset_mapping=encoding["offset_mapping"],
        threshold=0.05,
        token_type_ids=encoding["token_type_ids"],
    )[0]
    assert [triple(e) for e in found] == [span[:3] for span in spans]
    assert [e["score"] for e in found] == pytest.approx([span.probability for span in spans])
    long = " ".join(["Tom saw New York ."] * 20)
    many = pipeline([long, text])
    assert all(e["word"] == long[e["start"] : e["end"]] for e in many[0])
    assert max(e["end"] for e in many[0]) > 300
    assert [triple(e) for e in many[1]] == [triple(e) for e in found]
