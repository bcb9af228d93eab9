"""`crfkit.nn.CRFForTokenClassification`: behind a small encoder of its own, behind a tiny BERT, in transformers' Trainer."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from crfkit.errors import ArgumentError, FileFormatError, ImpossibleLabelsError, ShapeError

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install ".[torch]"')

from torch import nn

from crfkit.nn import CRFForTokenClassification, word_mask
from crfkit.structures import Bigrams

LABELS = ["O", "B-PER", "I-PER"]
needs_transformers = pytest.mark.skipif(
    find_spec("transformers") is None, reason="transformers is not installed (pip install transformers)"
)
needs_trainer = pytest.mark.skipif(
    find_spec("transformers") is None or find_spec("accelerate") is None,
    reason="transformers or accelerate is not installed (pip install transformers accelerate)",
)


class Encoder(nn.Module):
    """Embeddings and a convolution, with the outputs of transformers."""

    def __init__(self, n_outputs: int, name: str) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.convolution = nn.Conv1d(8, n_outputs, 3, padding=1)
        self.config = SimpleNamespace(id2label={2: "I-PER", 0: "O", 1: "B-PER"})
        self.name = name
        self.checkpointing = False

    def forward(self, input_ids: Any, attention_mask: Any = None) -> Any:
        scores = self.convolution(self.embedding(input_ids).mT).mT
        return SimpleNamespace(**{self.name: scores})

    def gradient_checkpointing_enable(self, **settings: Any) -> None:
        self.checkpointing = True

    def gradient_checkpointing_disable(self) -> None:
        self.checkpointing = False

    def save_pretrained(self, folder: Path, **settings: Any) -> None:
        torch.save(self.state_dict(), folder / "encoder.pt")


def model_of(kind: str, **settings: Any) -> CRFForTokenClassification:
    torch.manual_seed(0)
    if kind == "logits":
        return CRFForTokenClassification(Encoder(3, "logits"), **settings)
    encoder = Encoder(6, "last_hidden_state")
    return CRFForTokenClassification(encoder, hidden_size=6, dropout=0.0, **settings)


def sentences() -> dict[str, Any]:
    """Two sentences of pieces: [CLS] w1 ##w1 w2 [SEP], and [CLS] w1 [SEP] [PAD] [PAD]."""
    return {
        "input_ids": torch.tensor([[1, 5, 6, 7, 2], [1, 8, 2, 0, 0]]),
        "attention_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]),
        "labels": torch.tensor([[-100, 1, -100, 2, -100], [-100, 0, -100, -100, -100]]),
    }


@pytest.mark.parametrize("kind", ["logits", "hidden"])
def test_the_loss_is_that_of_the_first_pieces_alone(kind: str) -> None:
    model, given = model_of(kind), sentences()
    found = model(**given)
    assert found[0] is found.loss
    kept = found.logits[0, [1, 3]], found.logits[1, [1]]  # what a CRF over whole words would see
    expected = [
        model.crf(scores[None], torch.tensor([tags]))
        for scores, tags in zip(kept, ([1, 2], [0]), strict=True)
    ]
    torch.testing.assert_close(found.loss, -sum(expected) / 3)
    half = model(**given, num_items_in_batch=torch.tensor(6))
    torch.testing.assert_close(half.loss, found.loss / 2)
    found.loss.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_what_is_decoded() -> None:
    """First pieces where labels or a mask of words tell, else all pieces; nothing in training."""
    model, given = model_of("logits", bigrams="bio"), sentences()
    assert "decoded" not in model(**given)
    model.eval()
    labels = given.pop("labels")
    first = labels >= 0
    by_mask, by_labels = model(**given, word_mask=first), model(**given, labels=labels)
    assert list(by_mask) == ["logits", "decoded"]
    assert torch.equal(by_mask.decoded, by_labels.decoded)
    assert torch.equal(by_mask.decoded, model.decode(**given, word_mask=first))
    assert torch.equal(by_mask.decoded >= 0, first)
    assert torch.equal(by_mask.decoded[~first], torch.full((7,), -100))
    everything = model(**given).decoded
    assert torch.equal(everything >= 0, given["attention_mask"].bool())
    known = Bigrams.scheme("bio", LABELS)
    assert all(known.allows([LABELS[k] for k in row if k >= 0]) for row in everything.tolist())


def test_words_without_a_label_are_summed_over() -> None:
    model, given = model_of("logits"), sentences()
    first = given["labels"] >= 0
    given["labels"][0, 3] = -100
    found = model(**given, word_mask=first)
    values = []
    for label in range(3):
        given["labels"][0, 3] = label
        values.append(model(**given, num_items_in_batch=1).loss)
    alone = model.crf(found.logits[1, [1]][None], torch.tensor([[0]]))
    expected = -(torch.logsumexp(-torch.stack(values) - alone, 0) + alone) / 2
    torch.testing.assert_close(found.loss, expected)


def test_labels_that_the_bigrams_exclude_are_refused() -> None:
    model, given = model_of("logits", bigrams="bio"), sentences()
    given["labels"][1, 1] = 2  # I-PER begins
    with pytest.raises(ImpossibleLabelsError, match="sequence 1"):
        model(**given)


def test_a_batch_without_labels_has_no_loss_and_no_gradient() -> None:
    model, given = model_of("logits"), sentences()
    given["labels"][:] = -100
    loss = model(**given).loss
    loss.backward()
    assert loss == 0
    assert all((parameter.grad == 0).all() for parameter in model.parameters())


@pytest.mark.parametrize("kind", ["logits", "hidden"])
def test_saved_and_loaded(kind: str, tmp_path: Path) -> None:
    model, given = model_of(kind, bigrams="bio").eval(), sentences()
    model.save_pretrained(tmp_path)
    encoder = Encoder(3 if kind == "logits" else 6, "logits" if kind == "logits" else "last_hidden_state")
    encoder.load_state_dict(torch.load(tmp_path / "encoder.pt"))
    loaded = CRFForTokenClassification.from_pretrained(tmp_path, encoder).eval()
    assert loaded.labels == LABELS
    assert torch.equal(loaded(**given).loss, model(**given).loss)
    again = model_of(kind, bigrams="bio").eval()
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(**given).loss, model(**given).loss)


def test_a_file_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    model_of("hidden").save_pretrained(tmp_path)
    settings = (tmp_path / "crf.json").read_text()
    (tmp_path / "crf.json").write_text(settings.replace('"hidden_size": 6', '"hidden_size": null'))
    with pytest.raises(FileFormatError, match=r"crf.safetensors: classifier.bias, .* should not be there"):
        CRFForTokenClassification.from_pretrained(tmp_path, Encoder(3, "logits"))


def test_half_precision() -> None:
    model, given = model_of("hidden", bigrams="bio"), sentences()
    exact = model(**given).loss
    with torch.autocast("cpu", torch.bfloat16):
        found = model(**given)
    assert found.logits.dtype == torch.bfloat16
    assert found.loss.dtype == torch.float32
    torch.testing.assert_close(found.loss, exact, rtol=0.02, atol=0)
    found.loss.backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


def test_checkpointing_is_the_encoders_business() -> None:
    model = model_of("logits")
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    assert model.encoder.checkpointing
    model.gradient_checkpointing_disable()
    assert not model.encoder.checkpointing
    assert model.config is model.encoder.config


def test_encoders_that_do_not_fit_are_refused_with_a_message() -> None:
    given = {"input_ids": torch.ones(1, 2).long()}
    with pytest.raises(ArgumentError, match="hidden_size"):
        CRFForTokenClassification(Encoder(3, "last_hidden_state"))(**given)
    with pytest.raises(ArgumentError, match="hidden_size"):
        CRFForTokenClassification(Encoder(3, "logits"), hidden_size=3)(**given)
    with pytest.raises(ShapeError):
        CRFForTokenClassification(Encoder(3, "logits"), labels=["A", "B"])(**given)
    with pytest.raises(ArgumentError, match="labels"):
        CRFForTokenClassification(nn.Linear(2, 2))
    with pytest.raises(AttributeError, match="there is no loss, only logits"):
        _ = CRFForTokenClassification(Encoder(3, "logits"))(**given).loss


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_in_a_compiled_program() -> None:
    model, given = model_of("hidden", bigrams="bio"), sentences()
    compiled = torch.compile(model, backend="aot_eager")
    torch.testing.assert_close(compiled(**given).loss, model(**given).loss)
    model.eval()
    assert torch.equal(compiled(**given).decoded, model(**given).decoded)


def test_first_pieces_of_words() -> None:
    rows = [[None, 0, 0, 1, None], [0, 1, None, None, None]]
    encoding = type("Encoding", (dict,), {"word_ids": lambda self, b: rows[b]})(input_ids=rows)
    assert word_mask(encoding).tolist() == [
        [False, True, False, True, False],
        [True, True, False, False, False],
    ]


def tiny_bert(bert_class: str) -> Any:
    import transformers

    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=16, id2label=dict(enumerate(LABELS)), hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return getattr(transformers, bert_class)(config)


@needs_transformers
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("bert_class", ["BertForTokenClassification", "BertModel"])
def test_behind_bert(bert_class: str, tmp_path: Path) -> None:
    hidden = None if bert_class == "BertForTokenClassification" else 16
    model = CRFForTokenClassification(
        tiny_bert(bert_class), labels=LABELS, bigrams="bio", hidden_size=hidden, dropout=0
    )
    given = sentences()
    model.train()
    model(**given).loss.backward()
    plain = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model(**given).loss.backward()
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(parameter.grad, plain[name])
    model.gradient_checkpointing_disable()
    model.eval()
    asked = model(**given, output_hidden_states=True)
    assert len(asked.hidden_states) == 3
    model.save_pretrained(tmp_path)
    loaded = CRFForTokenClassification.from_pretrained(tmp_path).eval()
    torch.testing.assert_close(loaded(**given).loss, model(**given).loss)
    assert torch.equal(loaded.crf.bigrams, model.crf.bigrams)


@needs_trainer
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_in_the_trainer(tmp_path: Path) -> None:
    """Trained, evaluated and asked with nothing but the Trainer."""
    import transformers

    rng = np.random.default_rng(0)
    rows = []
    for _ in range(64):
        pieces = rng.integers(3, 20, size=rng.integers(3, 9))
        labels = [-100, *(1 if piece % 2 else 0 for piece in pieces), -100]
        ids = [1, *pieces.tolist(), 2]
        rows.append({"input_ids": ids, "attention_mask": [1] * len(ids), "labels": labels})

    def collate(batch: list[dict[str, list[int]]]) -> dict[str, Any]:
        size = max(len(row["input_ids"]) for row in batch)
        pads = {"input_ids": 0, "attention_mask": 0, "labels": -100}
        return {
            name: torch.tensor([row[name] + [pad] * (size - len(row[name])) for row in batch])
            for name, pad in pads.items()
        }

    def accuracy(prediction: Any) -> dict[str, float]:
        labels, found = prediction.label_ids, prediction.predictions
        return {"accuracy": float((found == labels)[labels >= 0].mean())}

    model = CRFForTokenClassification(tiny_bert("BertForTokenClassification"), bigrams="bio")
    trainer = transformers.Trainer(
        model=model,
        args=transformers.TrainingArguments(
            str(tmp_path), num_train_epochs=15, per_device_train_batch_size=8, gradient_accumulation_steps=2,
            learning_rate=0.01, report_to=[], disable_tqdm=True, use_cpu=True, gradient_checkpointing=True,
            save_strategy="epoch", save_total_limit=1,
        ),
        train_dataset=rows, eval_dataset=rows, data_collator=collate, compute_metrics=accuracy,
        preprocess_logits_for_metrics=CRFForTokenClassification.decoded_only,
    )  # fmt: skip
    trainer.train()
    assert trainer.evaluate()["eval_accuracy"] > 0.95
    unlabelled = [{k: v for k, v in row.items() if k != "labels"} for row in rows]
    trainer.data_collator = lambda batch: {
        k: v for k, v in collate([{**row, "labels": []} for row in batch]).items() if k != "labels"
    }
    assert len(trainer.predict(unlabelled).predictions) == 64
