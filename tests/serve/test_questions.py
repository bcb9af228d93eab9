"""What the server answers is what the library answers, for every kind of model."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason='needs Starlette: pip install ".[serve]"')
pytest.importorskip("uvicorn", reason='needs uvicorn: pip install ".[serve]"')
pytest.importorskip("httpx", reason="needs httpx")

from starlette.testclient import TestClient

from crfkit import CRF
from crfkit.data import Sentence, Word
from crfkit.errors import ArgumentError, UnsupportedError
from crfkit.serve import Limits, make_app
from crfkit.serve.asking import Asking
from crfkit.serve.batching import Batcher, Job
from crfkit.serve.errors import RequestError
from crfkit.serve.given import Item
from crfkit.serve.metrics import Metrics
from crfkit.serve.plain_text import split_text
from crfkit.serve.question import Question
from crfkit.serve.store import ModelStore
from tests.serve.models import (
    TEXT,
    attributes,
    columns,
    everything,
    names,
    parser,
    pipeline,
    segmenter,
    tagger,
)
from tests.serve.servers import asking


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with asking(everything()) as found:
        yield found


def ask(client: TestClient, path: str, status: int = 200, **request: Any) -> Any:
    response = client.post(path, json=request)
    assert response.status_code == status, response.text
    return response.json()


def words_of(text: str) -> list[list[str]]:
    return [[token.text for token in sentence] for sentence in split_text(text)]


def sentences(answer: Any) -> list[Any]:
    return [sentence for result in answer["results"] for sentence in result["sentences"]]


def test_labels_of_a_text(client: TestClient) -> None:
    answer = ask(client, "/tag", text=TEXT, probabilities=True)
    words = words_of(TEXT)
    assert [found["tokens"] for found in sentences(answer)] == words
    assert [found["labels"] for found in sentences(answer)] == names().predict(words)
    for found, table, labels in zip(
        sentences(answer), names().predict_marginals(words), names().predict(words), strict=True
    ):
        expected = [row[names().classes_.index(label)] for row, label in zip(table, labels, strict=True)]
        assert found["probabilities"] == pytest.approx(expected, abs=1e-12)
        assert [TEXT[start:end] for start, end in found["offsets"]] == found["tokens"]
    assert answer["model"] == "names"
    assert answer["version"] == "names-1"


def test_batches(client: TestClient) -> None:
    texts = [TEXT, "", "Anna lives in Oslo.", "   \n"]
    answer = ask(client, "/tag", texts=texts)
    assert [len(result["sentences"]) for result in answer["results"]] == [3, 0, 1, 0]
    assert [s["labels"] for s in sentences(answer)] == names().predict(
        [w for t in texts for w in words_of(t)]
    )
    tokens = [["Anna", "lives"], [], ["Oslo"]]
    assert [s["labels"] for s in sentences(ask(client, "/tag", tokens=tokens))] == names().predict(tokens)
    assert ask(client, "/tag", texts=[])["results"] == []


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"threshold": 0.05},
        {"decode": "viterbi"},
        {"decode": "spans"},
        {"decode": "f1"},
        {"scheme": "bio"},
    ],
)
def test_spans(client: TestClient, options: dict[str, Any]) -> None:
    answer = ask(client, "/spans", text=TEXT, **options)
    expected = names().predict_spans(words_of(TEXT), **options)
    for tokens, sentence, spans in zip(split_text(TEXT), sentences(answer), expected, strict=True):
        assert len(sentence["spans"]) == len(spans)
        for found, span in zip(sentence["spans"], spans, strict=True):
            assert (found["start"], found["end"], found["label"]) == span[:3]
            assert found["probability"] == pytest.approx(span.probability, abs=1e-9)
            assert found["begin_character"] == tokens[span.start].start
            assert found["end_character"] == tokens[span.end - 1].end
            assert found["text"] == TEXT[found["begin_character"] : found["end_character"]]
    with_tokens = ask(client, "/spans", tokens=words_of(TEXT), **options)
    assert [s["label"] for found in sentences(with_tokens) for s in found["spans"]] == [
        s.label for spans in expected for s in spans
    ]


def test_nbest(client: TestClient) -> None:
    found = sentences(ask(client, "/nbest", text=TEXT, n=4))
    for sentence, best in zip(found, names().predict_nbest(words_of(TEXT), 4), strict=True):
        assert [one["labels"] for one in sentence["nbest"]] == [labels for _, labels in best]
        assert [one["probability"] for one in sentence["nbest"]] == pytest.approx([p for p, _ in best])


@pytest.mark.parametrize("options", [{}, {"label": "O"}, {"label": "B-PER", "against": "B-LOC"}])
def test_explanations_of_labels(client: TestClient, options: dict[str, Any]) -> None:
    answer = ask(client, "/explain", text=TEXT, sentence=1, position=2, **options)
    words = words_of(TEXT)[1]
    expected = names().explain(words, 2, **options)
    assert answer["tokens"] == words
    assert answer["explanation"] == expected.to_dict()
    parts = answer["explanation"]["parts"]
    assert sum(part["value"] for part in parts) == pytest.approx(answer["explanation"]["log_odds"], abs=1e-9)
    of_tokens = ask(client, "/explain", tokens=[words], position=2, **options)
    assert of_tokens["explanation"] == answer["explanation"]


def test_explanations_of_heads(client: TestClient) -> None:
    text = "The dog sees the cat."
    answer = ask(client, "/explain", model="pipeline", text=text, position=1)
    [sentence] = pipeline()(text)
    assert pipeline().components_[-1].explain_arc(sentence, 2).to_dict() == answer["explanation"]  # type: ignore[attr-defined]
    assert answer["words"] == [word.form for word in sentence.words]
    answer = ask(
        client, "/explain", model="parser", tokens=[["the", "dog", "sees"]], position=1, label=3, against=0
    )
    assert (answer["explanation"]["label"], answer["explanation"]["against"]) == (3, 0)
    ask(client, "/explain", 422, model="parser", tokens=[["the", "dog", "sees"]], position=1, label=4)
    ask(client, "/explain", 422, model="parser", tokens=[["the", "dog", "sees"]], position=1, label="dog")
    ask(client, "/explain", 422, model="segmenter", text="thecat")
    for name in ("pipeline", "names"):
        ask(client, "/explain", 422, model=name, texts=[])


def test_rows_of_columns(client: TestClient) -> None:
    rows = [[["the", "DT"], ["dog", "NN"], ["runs", "VBZ"]]]
    found = sentences(ask(client, "/tag", model="columns", rows=rows))
    assert [s["labels"] for s in found] == columns().predict([[tuple(row) for row in rows[0]]])
    [spans] = sentences(ask(client, "/spans", model="columns", rows=rows))
    assert [span["text"] for span in spans["spans"]] == ["the dog", "runs"]
    assert "2 columns" in ask(client, "/tag", 422, model="columns", rows=[[["the"]]])["error"].replace(
        "expected 2", "2 columns"
    )
    assert "reads rows" in ask(client, "/tag", 422, model="columns", text="the dog")["error"]


@pytest.mark.parametrize(
    "features", [[["w=dog", "bias"], ["w=runs"]], [{"w=dog": 1.0, "bias": 1}, {"w=runs": 0.5}]]
)
def test_features(client: TestClient, features: Any) -> None:
    [found] = sentences(ask(client, "/tag", model="attributes", features=[features]))
    assert [found["labels"]] == attributes().predict([features])
    for bad in ([[1, 2]], [[{"w": [1]}]], [[None]], ["text"], [[["a", 1]]]):
        assert ask(client, "/tag", 422 if isinstance(bad[0], list) else 400, model="attributes", features=bad)


def test_a_tagger_of_treebanks(client: TestClient) -> None:
    [found] = sentences(ask(client, "/tag", model="tagger", text="The dog sleeps."))
    [expected] = tagger().predict([Sentence([Word(form) for form in found["tokens"]])])
    assert found["labels"] == [word.upos for word in expected.words]
    assert (
        "it answers /tag, /nbest, /explain" in ask(client, "/spans", 422, model="tagger", text="x")["error"]
    )


def test_a_parser(client: TestClient) -> None:
    words = [
        {"form": "the", "upos": "DET"},
        {"form": "dog", "upos": "NOUN"},
        {"form": "sees", "upos": "VERB"},
    ]
    given = Sentence([Word(word["form"], upos=word["upos"]) for word in words])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        [expected] = parser().predict([given])
        [table] = parser().arc_probabilities([given])
        [best] = parser().predict_nbest([given], 3)
    answer = ask(client, "/parse", model="parser", words=[words], probabilities=True, svg=True, conllu=True)
    [found] = sentences(answer)
    assert [(w["head"], w["deprel"]) for w in found["words"]] == [(w.head, w.deprel) for w in expected.words]
    probabilities = [min(table[w.head, i], 1.0) for i, w in enumerate(expected.words, 1)]
    assert [w["head_probability"] for w in found["words"]] == pytest.approx(probabilities, abs=1e-12)
    assert found["svg"].startswith("<svg")
    assert found["conllu"].startswith("1\tthe\t_\tDET\t")
    [nbest] = sentences(ask(client, "/nbest", model="parser", words=[words], n=3))
    assert [one["probability"] for one in nbest["nbest"]] == pytest.approx([one.probability for one in best])
    assert [one["heads"] for one in nbest["nbest"]] == [[w.head for w in one.sentence.words] for one in best]
    assert len(sentences(ask(client, "/parse", model="parser", tokens=[["the", "dog"]]))) == 1
    ill_formed: list[Any] = [[[{"upos": "DET"}]], [["the"]], ["the"]]
    for bad in ill_formed:
        ask(client, "/parse", 400, model="parser", words=bad)
    for bad in (
        [[{"form": "a", "head": "1"}]],
        [[{"form": "a", "upos": 1}]],
        [[{"form": " "}]],
        [[{"form": "a\tb"}]],
    ):
        ask(client, "/parse", 422, model="parser", words=bad)


def test_a_pipeline(client: TestClient) -> None:
    text = "The dog sees the cat. The farmers call the horse."
    found = sentences(ask(client, "/parse", model="pipeline", text=text, probabilities=True))
    expected = pipeline()(text)
    assert [[w["form"] for w in s["words"]] for s in found] == [[w.form for w in s.words] for s in expected]
    assert [[w["head"] for w in s["words"]] for s in found] == [[w.head for w in s.words] for s in expected]
    words = [word for sentence in found for word in sentence["words"]]
    assert all(0 <= word["head_probability"] <= 1 for word in words)
    assert all(0 <= word[name] <= 1 for word in words for name in word if name.endswith("_probability"))
    assert any(name.startswith("upos") and name.endswith("_probability") for name in words[0])
    assert [t["text"] for s in found for t in s["tokens"]] == [
        text[t["start"] : t["end"]] for s in found for t in s["tokens"]
    ]
    tagged = sentences(ask(client, "/tag", model="pipeline", text=text))
    assert [[w["upos"] for w in s["words"]] for s in tagged] == [[w.upos for w in s.words] for s in expected]
    assert len(sentences(ask(client, "/nbest", model="pipeline", text=text, n=2))) == len(expected)
    ask(client, "/spans", 422, model="pipeline", text=text)
    ask(client, "/parse", 422, model="pipeline", text=text, decode="best")


def test_a_word_segmenter(client: TestClient) -> None:
    text = "thecatsat\n\nheeats"
    found = sentences(ask(client, "/tag", model="segmenter", text=text))
    expected = segmenter().predict(["thecatsat", "heeats"])
    assert [s["tokens"] for s in found] == [[word.form for word in words] for words in expected]
    assert [[text[a:b] for a, b in s["offsets"]] for s in found] == [s["tokens"] for s in found]
    spans = sentences(ask(client, "/spans", model="segmenter", text=text, threshold=0.2))
    for one, words in zip(spans, segmenter().predict_marginals(["thecatsat", "heeats"]), strict=True):
        likely = [(word.form, p) for word, p in words if p >= 0.2]
        assert [(span["text"], span["probability"]) for span in one["spans"]] == [
            (form, pytest.approx(p)) for form, p in likely
        ]
    [first, _] = sentences(ask(client, "/nbest", model="segmenter", text=text, n=2))
    assert first["nbest"][0]["tokens"] == found[0]["tokens"]
    ask(client, "/parse", 422, model="segmenter", text=text)
    ask(client, "/tag", 422, model="segmenter", tokens=[["a"]])


@pytest.mark.parametrize(
    ("path", "request_", "status"),
    [
        ("/tag", {}, 400),
        ("/tag", {"text": "a", "tokens": [["a"]]}, 400),
        ("/tag", {"text": 1}, 400),
        ("/tag", {"texts": "a"}, 400),
        ("/tag", {"texts": [1]}, 400),
        ("/tag", {"tokens": ["a"]}, 400),
        ("/tag", {"tokens": [[1]]}, 400),
        ("/tag", {"text": "a", "probabilities": 1}, 400),
        ("/tag", {"text": "a", "threshold": 0.1}, 400),
        ("/tag", {"text": "a", "model": "none"}, 404),
        ("/tag", {"text": "a", "model": ["names"]}, 404),
        ("/tag", {"text": "a", "model": "../names"}, 404),
        ("/spans", {"text": "a", "threshold": 0}, 400),
        ("/spans", {"text": "a", "threshold": 1.5}, 400),
        ("/spans", {"text": "a", "threshold": 1e-9}, 400),
        ("/spans", {"text": "a", "threshold": "0.5"}, 400),
        ("/spans", {"text": "a", "threshold": True}, 400),
        ("/spans", {"text": "a", "decode": "best"}, 400),
        ("/spans", {"text": "a", "decode": ["f1"]}, 400),
        ("/spans", {"text": "a", "scheme": "x"}, 400),
        ("/spans", {"text": "a", "scheme": "bmes"}, 422),
        ("/nbest", {"text": "a", "n": 0}, 400),
        ("/nbest", {"text": "a", "n": 51}, 400),
        ("/nbest", {"text": "a", "n": 1.5}, 400),
        ("/explain", {"text": "a", "position": -1}, 400),
        ("/explain", {"text": "a", "position": 1}, 422),
        ("/explain", {"text": "a", "sentence": 1}, 422),
        ("/explain", {"text": ""}, 422),
        ("/explain", {"texts": []}, 422),
        ("/explain", {"text": "a", "label": "none"}, 422),
        ("/explain", {"text": "a", "label": [1]}, 400),
    ],
)
def test_bad_requests(client: TestClient, path: str, request_: dict[str, Any], status: int) -> None:
    error = ask(client, path, status, **request_)["error"]
    assert error
    assert "\n" not in error


def test_limits() -> None:
    limits = Limits(max_body=2_000, max_texts=3, max_tokens=20, max_sentence=10, max_tree=4)
    with asking({"names": names(), "pipeline": pipeline(), "parser": parser()}, limits) as client:
        assert ask(client, "/tag", texts=["a b c"] * 3)
        ask(client, "/tag", 413, texts=["a"] * 4)
        ask(client, "/tag", 413, texts=["a b c d e f g"] * 3)
        ask(client, "/tag", 413, tokens=[["a"] * 11])
        ask(client, "/tag", 413, text="x" * 2_000)
        ask(client, "/nbest", 413, texts=["a b c d e f"] * 3, n=5)
        assert ask(client, "/nbest", texts=["a b c d e f"] * 3, n=4)
        ask(client, "/parse", 413, model="parser", tokens=[["a"] * 5])
        ask(client, "/parse", 413, model="pipeline", text="The dog sees the cat")
        assert ask(client, "/parse", model="pipeline", text="The dog sees it")
    with pytest.raises(ArgumentError, match="max_body is 0"):
        Limits(max_body=0)


def test_a_bad_request_among_good_ones_fails_alone(client: TestClient) -> None:
    """Requests that are answered together do not share their errors."""
    model = client.app.store.get("attributes").model
    batcher = Batcher(model, "test")
    good = [["w=dog"], ["w=runs"]]
    jobs = [
        Job(Question("tag"), [Item(2, good)], 1e18),
        Job(Question("tag"), [Item(2, good), Item(1, [None])], 1e18),
    ]
    batcher._answer(jobs)
    assert jobs[0].future.result()[0][0]["labels"] == attributes().predict([good])[0]
    error = jobs[1].future.exception()
    assert "sequence 1" in str(error)  # counted in its own request
    batcher.close()


def test_a_version_that_was_just_replaced() -> None:
    """A request that was read for it goes to the current one; at the end of the server there is none."""
    store = ModelStore({"names": names()}, Limits())
    old = store.get()
    store.replace("names", names())
    words = ["Anna", "left", "."]
    ask_old = Asking(store, Metrics()).ask(old, Question("tag"), [Item(3, words)])
    assert asyncio.run(ask_old) == [[{"labels": names().predict([words])[0]}]]
    store.close()
    with pytest.raises(RequestError, match="the server ends"):
        asyncio.run(Asking(store, Metrics()).ask(store.get(), Question("tag"), [Item(3, words)]))


def test_large_requests_are_answered_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crfkit.serve.batching.SLICE", 7)
    texts = [TEXT] * 5 + ["a b c d e f g h i j k l"]
    with asking({"names": names()}) as client:
        answer = ask(client, "/tag", texts=texts)
        assert [s["labels"] for s in sentences(answer)] == names().predict(
            [w for t in texts for w in words_of(t)]
        )


def test_state(client: TestClient) -> None:
    health = client.get("/health").json()
    assert health["status"] == "UP"
    assert health["models"][0] == "names-1"
    described = {model["name"]: model for model in client.get("/models").json()["models"]}
    assert list(described) == list(everything())
    assert described["names"]["scheme"] == "bio"
    assert described["columns"]["reads"] == ["rows"]
    assert described["attributes"]["reads"] == ["features"]
    assert described["parser"]["questions"] == ["parse", "nbest", "explain"]
    ask(client, "/tag", text="a b c")
    metrics = client.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = metrics.text.splitlines()
    assert any(line.startswith('crfkit_requests_total{path="/tag",status="200"} ') for line in lines)
    assert any(line.startswith('crfkit_request_seconds_bucket{path="/tag",le="+Inf"} ') for line in lines)
    assert any(line.startswith('crfkit_tokens_total{model="names",question="tag"} ') for line in lines)


def test_safe_headers(client: TestClient) -> None:
    for path in ("/", "/docs", "/health", "/nowhere"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    policy = client.get("/").headers["content-security-policy"]
    assert "unsafe" not in policy
    assert policy.count("sha256-") == 2


def test_what_cannot_be_served() -> None:
    with pytest.raises(ArgumentError, match="no model"):
        make_app({})
    with pytest.raises(ArgumentError, match="name of a model"):
        make_app({'a"b': names()})
    with pytest.raises(UnsupportedError, match="cannot be served"):
        make_app({"tokenizer": pipeline().tokenizer_})
    with pytest.raises(UnsupportedError, match="which no request can hold"):
        make_app({"lattices": segmenter().crf_})
    dense = CRF().fit([np.array([[1.0, 2.0], [0.5, 1.0]])], [["A", "B"]])
    with pytest.raises(UnsupportedError, match="made in Python"):
        make_app({"dense": dense})


def test_labels_that_are_no_strings() -> None:
    crf: CRF[Any] = CRF(features="pos", l2=0.1).fit([["a", "b"], ["b", "a"]], [[1, (2, 3)], [(2, 3), 1]])
    with asking({"numbers": crf}) as client:
        [found] = sentences(ask(client, "/tag", tokens=[["a", "b"]]))
        assert found["labels"] == [1, "(2, 3)"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t ", []),
        ("one", [["one"]]),
        ("It costs 3.50, i.e. much!", [["It", "costs", "3.50", ",", "i.e", ".", "much", "!"]]),
        ("A line\nanother", [["A", "line"], ["another"]]),
        ("He left. She stayed.", [["He", "left", "."], ["She", "stayed", "."]]),
        ("Dr. J. Smith left.", [["Dr", "."], ["J", ".", "Smith", "left", "."]]),
        ("«Oui.» Il part.", [["«", "Oui", ".", "»"], ["Il", "part", "."]]),
        ("well-known don’t a_b", [["well-known", "don’t", "a_b"]]),
        ("😀 名前", [["😀", "名前"]]),
    ],
)
def test_plain_text(text: str, expected: list[list[str]]) -> None:
    found = split_text(text)
    assert [[token.text for token in sentence] for sentence in found] == expected
    assert all(text[token.start : token.end] == token.text for sentence in found for token in sentence)


def test_errors_say_what_was_expected(client: TestClient) -> None:
    def said(path: str, status: int, **request: Any) -> str:
        return ask(client, path, status, **request)["error"]

    assert "expected an input (text, texts, tokens, " in said("/tag", 400, txt=TEXT)
    assert "has no label 'PER', expected one of B-" in said("/explain", 422, text=TEXT, label="PER")
    assert client.get("/tag").json() == {"error": "the path does not take GET, expected POST"}
    assert "/docs lists" in client.get("/tags").json()["error"]
