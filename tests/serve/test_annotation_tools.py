"""The requests of Label Studio and doccano, as their documentation has them."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason='needs Starlette: pip install ".[serve]"')
pytest.importorskip("uvicorn", reason='needs uvicorn: pip install ".[serve]"')
pytest.importorskip("httpx", reason="needs httpx")

from starlette.testclient import TestClient

from crfkit import CRF, load
from crfkit.serve.annotations import AnnotatedText, CharacterSpan, RecentTexts
from crfkit.serve.asking import Asking
from crfkit.serve.label_config import LabelConfig
from crfkit.serve.training import fit_annotations
from crfkit.structures import SpanLabels
from tests.serve.models import columns, names, parser, pipeline
from tests.serve.servers import asking

CONFIG = """
<View>
  <Text name="text" value="$text"/>
  <Labels name="ner" toName="text">
    <Label value="Person" predicted_values="PER,human"/>
    <Label value="loc"/>
    <Label value="Time"/>
  </Labels>
</View>
"""
TEXT = "President Obama is speaking at 3pm today in New York."
TASK = {"id": 7, "data": {"text": TEXT}, "meta": {}, "is_labeled": False, "project": 2}


def predict_request(*tasks: Any) -> dict[str, Any]:
    """What Label Studio's connector sends."""
    return {
        "tasks": list(tasks),
        "model_version": "INITIAL",
        "project": "2.1629200174",
        "label_config": CONFIG,
        "params": {"login": None, "password": None, "context": None},
    }


def region(start: int, end: int, label: str) -> dict[str, Any]:
    value = {"start": start, "end": end, "text": TEXT[start:end], "labels": [label]}
    return {"id": "x", "from_name": "ner", "to_name": "text", "type": "labels", "value": value}


def event(action: str = "ANNOTATION_CREATED", *regions: Any, **more: Any) -> dict[str, Any]:
    """A webhook's payload, as the reference of webhook events has it."""
    return {
        "action": action,
        "annotation": {
            "id": 17,
            "result": list(regions),
            "was_cancelled": False,
            "ground_truth": False,
            "lead_time": 37.13,
            "prediction": {},
            "task": 7,
            "completed_by": 1,
        },
        "project": {
            "id": 2,
            "title": "New Project #2",
            "label_config": CONFIG,
            "min_annotations_to_start_training": 10,
        },
        **more,
    }


def post(client: TestClient, path: str, request: Any, status: int = 200) -> Any:
    response = client.post(path, json=request)
    assert response.status_code == status, response.text
    return response.json()


def wait_for(client: TestClient, version: str) -> None:
    for _ in range(500):
        if version in client.get("/health").json()["models"]:
            return
        time.sleep(0.02)
    raise AssertionError(f"no {version}: {client.get('/health').text}")


def test_health_and_setup() -> None:
    with asking({"names": names()}) as client:
        health = client.get("/health").json()
        assert health["status"] == "UP"
        assert health["model_class"] == "CRF"
        request = {
            "project": "2.1629200174",
            "schema": CONFIG,
            "hostname": "http://localhost:8080",
            "access_token": "secret",
            "extra_params": None,
        }
        assert post(client, "/setup", request) == {"model_version": "names-1"}
        assert post(client, "/models/names/setup", request) == {"model_version": "names-1"}
        assert client.get("/models/names/health").json()["status"] == "UP"
        assert client.get("/models/other/health").status_code == 404


def test_predictions() -> None:
    text = "Anna Smith moved to Oslo."
    with asking({"pipeline": pipeline(), "names": names()}) as client:
        request = predict_request({"id": 1, "data": {"text": text}}, {"data": {"text": "nothing here"}}, TASK)
        answer = post(client, "/models/names/predict", request)
        post(client, "/predict", request, 422)  # the first model is a pipeline
    assert answer["model_version"] == "names-1"
    first, second, _ = answer["results"]
    expected = names().predict_spans([["Anna", "Smith", "moved", "to", "Oslo", "."]], decode="viterbi")[0]
    assert [found["value"]["labels"] for found in first["result"]] == [["Person"], ["loc"]]
    assert [(f["value"]["start"], f["value"]["end"]) for f in first["result"]] == [(0, 10), (20, 24)]
    assert [found["value"]["text"] for found in first["result"]] == ["Anna Smith", "Oslo"]
    for found, span in zip(first["result"], expected, strict=True):
        assert (found["from_name"], found["to_name"], found["type"]) == ("ner", "text", "labels")
        assert found["score"] == pytest.approx(span.probability, abs=1e-9)
    assert first["score"] == pytest.approx(sum(span.probability for span in expected) / 2, abs=1e-9)
    assert first["model_version"] == "names-1"
    assert second["result"] == []


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ({}, 400),
        ({"tasks": 1}, 400),
        ({"tasks": [1]}, 400),
        ({"tasks": [{"data": {}}]}, 400),
        ({"tasks": [{"data": {"text": 5}}]}, 400),
        ({"tasks": [], "label_config": 5}, 400),
        ({"tasks": [], "label_config": "<View"}, 400),
        ({"tasks": [], "label_config": "<View/>"}, 422),
        ({"tasks": [], "label_config": '<!DOCTYPE x [<!ENTITY a "b">]><View>&a;</View>'}, 400),
        ({"tasks": [{}] * 2000}, 413),
        ({"tasks": [{"data": {"other": "text"}}], "label_config": CONFIG}, 400),
    ],
)
def test_bad_tasks(request_: dict[str, Any], status: int) -> None:
    with asking({"names": names()}) as client:
        assert post(client, "/predict", request_, status)["error"]


def test_an_annotation_trains_a_new_version(tmp_path: Path) -> None:
    """The text comes with the event, or came with the request for predictions."""
    before = names()
    file = tmp_path / "names.crf"
    before.save(file)
    saved = tmp_path / "saved"
    saved.mkdir()
    original = file.read_bytes()
    with asking({"names": file}, train=True, save_dir=saved) as client:
        unknown = post(client, "/webhook", event("ANNOTATION_CREATED", region(10, 15, "Person")), 201)
        assert "skipped" in unknown["result"]  # a task that was never seen
        post(client, "/predict", predict_request(TASK))
        regions = region(10, 15, "Person"), region(44, 52, "loc"), region(31, 40, "Time")
        answer = post(client, "/webhook", event("ANNOTATION_CREATED", *regions), 201)
        assert answer["status"] == "ok"
        wait_for(client, "names-2")
        after = post(client, "/predict", predict_request(TASK))
        assert after["model_version"] == "names-2"
        assert [found["value"]["text"] for found in after["results"][0]["result"]] == [
            "Obama",
            "3pm today",
            "New York",
        ]
        assert [found["value"]["labels"][0] for found in after["results"][0]["result"]] == [
            "Person",
            "Time",
            "loc",
        ]
        # The same annotation again, changed: nothing of the first one is left.
        other = {**TASK, "data": {"text": TEXT}}
        post(client, "/webhook", event("ANNOTATION_UPDATED", region(10, 15, "loc"), task=other), 201)
        wait_for(client, "names-3")
        found = post(client, "/predict", predict_request(TASK))["results"][0]["result"]
        assert [(f["value"]["text"], f["value"]["labels"][0]) for f in found] == [("Obama", "loc")]
        assert "B-Time" not in client.app.store.get().model.classes
        assert post(client, "/webhook", event("ANNOTATION_DELETED"), 201)["result"] == {"job": None}
    assert file.read_bytes() == original
    for _ in range(200):
        if (saved / "names-3.crf").exists():
            break
        time.sleep(0.02)
    assert sorted(path.name for path in saved.iterdir()) == ["names-2.crf", "names-3.crf"]
    assert load(saved / "names-2.crf").predict([TEXT.split()])


def test_annotations_begin_with_the_file_that_was_read_last(tmp_path: Path) -> None:
    file = tmp_path / "names.crf"
    names().save(file)
    with asking({"names": file}, train=True) as client:
        post(client, "/webhook", event("ANNOTATION_CREATED", region(10, 15, "Person"), task=TASK), 201)
        wait_for(client, "names-2")
        X, y = [["Xyzzy", "sang"], ["he", "sang"]], [["B-SONG", "O"], ["O", "O"]]
        CRF(features="names", l2=0.1).fit(X, y).save(file)
        client.app.store.reload()
        wait_for(client, "names-3")
        post(client, "/webhook", event("ANNOTATION_UPDATED", region(10, 15, "Person"), task=TASK), 201)
        wait_for(client, "names-4")
        labels = client.get("/models").json()["models"][0]["labels"]
        assert "B-SONG" in labels
        assert "B-ORG" not in labels


def test_train_and_start_training() -> None:
    """The request of older versions of Label Studio, with all annotated tasks."""
    annotated = [
        {**TASK, "annotations": [{"result": [region(10, 15, "Person")]}]},
        {"id": 8, "data": {"text": "x"}},
    ]
    with asking({"names": names()}, train=True) as client:
        request = {
            "annotations": annotated,
            "project": "2.1",
            "label_config": CONFIG,
            "params": {"login": None},
        }
        assert post(client, "/train", request, 201) == {"job": "names-after-1"}
        wait_for(client, "names-2")
        found = post(client, "/predict", predict_request(TASK))["results"][0]["result"]
        assert "Obama" in [region["value"]["text"] for region in found]
        again = {"action": "START_TRAINING", "project": {"id": 2, "label_config": CONFIG}}
        assert post(client, "/webhook", again, 201)["result"] == {"job": "names-after-2"}
        wait_for(client, "names-3")
        assert post(client, "/webhook", {"action": "PROJECT_UPDATED"}) == {"status": "Unknown event"}
        post(client, "/train", {"annotations": []}, 400)
        post(client, "/train", {"annotations": [5]}, 400)
        post(client, "/webhook", {"action": "ANNOTATION_CREATED"}, 400)
        post(
            client,
            "/webhook",
            event("ANNOTATION_CREATED", {"type": "labels", "value": {"start": "a"}}, task=TASK),
            400,
        )


def test_training_needs_the_option_and_a_model_of_words() -> None:
    with asking({"names": names()}) as client:
        post(client, "/webhook", {"action": "START_TRAINING"}, 403)
        post(client, "/train", {"annotations": [1]}, 403)
    with asking({"columns": columns(), "parser": parser()}, train=True) as client:
        post(client, "/webhook", {"action": "START_TRAINING"}, 422)
        post(client, "/models/parser/webhook", {"action": "START_TRAINING"}, 422)


def test_few_annotations_do_not_undo_much() -> None:
    """Annotations are learnt, and what is in no annotation stays nearly as it was."""
    from crfkit.cli.demonstration.sample import draw_names

    drawn, before = draw_names("test"), names()
    spans = (CharacterSpan(10, 15, "PER"), CharacterSpan(44, 52, "LOC"), CharacterSpan(31, 40, "TIME"))
    after = fit_annotations(before, [AnnotatedText(TEXT, spans)])
    words, labels = AnnotatedText(TEXT, spans).examples("bio")
    assert after.predict(words) == labels
    assert before.predict(words) != labels  # which is left alone
    assert after.score(drawn.words, drawn.labels) > before.score(drawn.words, drawn.labels) - 0.05


@pytest.mark.parametrize("scheme", ["bio", "iobes", "bilou", "bmes", "plain"])
def test_labels_of_annotated_texts(scheme: str) -> None:
    text = "Anna Smith, of New York City, left.\nOslo"
    spans = (CharacterSpan(0, 10, "PER"), CharacterSpan(16, 28, "LOC"), CharacterSpan(36, 40, "LOC"))
    X, y = AnnotatedText(text, spans).examples(scheme)
    reader = SpanLabels.of(sorted({label for labels in y for label in labels}), scheme)
    ids = {label: i for i, label in enumerate(sorted({label for labels in y for label in labels}))}
    found = [
        (" ".join(words[span.start : span.end]), span.label)
        for words, labels in zip(X, y, strict=True)
        for span in reader.read([ids[label] for label in labels])
    ]
    assert found == [("Anna Smith", "PER"), ("New York City", "LOC"), ("Oslo", "LOC")]


def test_spans_that_do_not_fit_the_tokens() -> None:
    text = "abc def ghi"
    spans = (
        CharacterSpan(1, 5, "X"),
        CharacterSpan(4, 7, "Y"),
        CharacterSpan(8, 100, "Z"),
        CharacterSpan(3, 4, "W"),
    )
    assert AnnotatedText(text, spans).examples("bio") == ([["abc", "def", "ghi"]], [["B-X", "I-X", "B-Z"]])


def test_texts_are_forgotten() -> None:
    recent = RecentTexts(most=3, characters=10)
    for number in range(5):
        recent.put(str(number), AnnotatedText("ab"))
    assert len(recent) == 3
    assert recent.get("1") is None
    recent.put("long", AnnotatedText("x" * 9))
    assert len(recent) == 1
    recent.drop("long")
    recent.drop("long")
    assert len(recent) == 0
    small = RecentTexts(most=1000, characters=10_000)
    for number in range(100):  # spans take memory too
        small.put(str(number), AnnotatedText("ab", (CharacterSpan(0, 1, "x" * 100),) * 10))
    assert len(small) < 10
    for number in range(100):
        small.drop(str(number))
    assert small._size == 0


def test_large_texts_do_not_keep_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []
    read = Asking.read

    def note(*arguments: Any) -> Any:
        threads.append(threading.current_thread().name)
        return read(*arguments)

    monkeypatch.setattr(Asking, "read", note)
    text = "Anna lives in Oslo. " * 2000
    with asking({"names": names()}) as client:
        assert client.post("/doccano", json={"text": text}).status_code == 200
        assert client.post("/predict", json=predict_request({"data": {"text": text}})).status_code == 200
    assert len(threads) == 2
    assert all(name.startswith("asyncio_") for name in threads)


def test_names_of_labels() -> None:
    config = LabelConfig.parse(CONFIG)
    assert [config.project_label(label) for label in ("PER", "human", "LOC", "X")] == [
        "Person",
        "Person",
        "loc",
        "X",
    ]
    assert [config.model_label(label, ["PER", "LOC"]) for label in ("Person", "loc", "Time")] == [
        "PER",
        "LOC",
        "Time",
    ]


DOCCANO_TEMPLATE = """
[
  {% for span in input.spans %}
    {"label": "{{ span.label }}", "start_offset": {{ span.start_offset }},
     "end_offset": {{ span.end_offset }}}{% if not loop.last %},{% endif %}
  {% endfor %}
]
"""


def test_doccano() -> None:
    """The body that its custom REST request sends, and the mapping template of the docs on the answer."""
    jinja2 = pytest.importorskip("jinja2", reason="needs Jinja2")
    text = "Anna Smith moved to Oslo."
    with asking({"names": names(), "parser": parser()}) as client:
        answer = post(client, "/doccano", {"text": text})
        labels = json.loads(jinja2.Template(DOCCANO_TEMPLATE).render(input=answer))
        assert labels == [
            {"label": "PER", "start_offset": 0, "end_offset": 10},
            {"label": "LOC", "start_offset": 20, "end_offset": 24},
        ]
        assert (
            json.loads(jinja2.Template(DOCCANO_TEMPLATE).render(input=post(client, "/doccano", {"text": ""})))
            == []
        )
        post(client, "/doccano", {"text": text, "model": "parser"}, 422)
        post(client, "/doccano", {"text": text, "model": "other"}, 404)
        post(client, "/doccano", {"text": 5}, 400)
    page = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")
    assert "".join(DOCCANO_TEMPLATE.split()) in "".join(page.split())


def test_a_model_whose_labels_cannot_be_trained_keeps_the_current_one() -> None:
    """New labels that the transitions of a model forbid."""
    from crfkit import Chain

    crf: CRF[Any] = CRF(Chain(bigrams="observed"), features="names", l2=0.1)
    crf.fit([["Anna", "left"], ["he", "left"]], [["B-PER", "O"], ["O", "O"]])
    with asking({"names": crf}, train=True) as client:
        task = {"id": 1, "data": {"text": "Anna left"}}
        post(client, "/webhook", event("ANNOTATION_CREATED", region(0, 9, "Time"), task=task), 201)
        time.sleep(0.5)
        assert post(client, "/predict", predict_request(task))["results"]
