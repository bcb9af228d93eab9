"""A CRF behind an encoder of Hugging Face's transformers, or any with the same interface; transformers is not required."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from crfkit.errors import ArgumentError, FileFormatError, ImpossibleLabelsError, ShapeError
from crfkit.nn.layer import ChainCRF
from crfkit.nn.problem.constraints import BigramsLike
from crfkit.nn.problem.layout import check_layout
from crfkit.structures import Span, Threshold

IGNORED = -100  # the label of masked pieces
SETTINGS, PARAMETERS = "crf.json", "crf.safetensors"


class TokenLabels(dict[str, Any]):
    """What `CRFForTokenClassification` gives: `loss` (with labels), `logits`, and `decoded` unless in training.

    Parts are found by name, as attributes, and by number, like the outputs of transformers.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(f"there is no {name}, only {', '.join(self)}.") from error

    def __getitem__(self, key: str | int | slice) -> Any:
        return super().__getitem__(key) if isinstance(key, str) else tuple(self.values())[key]


class CRFForTokenClassification(nn.Module):
    """Labels of tokens by an encoder and a CRF, with the forward pass that `transformers.Trainer` expects.

    `encoder` returns `logits` [B, T, L], as `AutoModelForTokenClassification` does; or it returns `last_hidden_state`
    [B, T, `hidden_size`], and a linear layer of its own makes emissions of it. The names of the `labels` are those of
    `encoder.config.id2label` where they are not given; `bigrams` as in `ChainCRF`.

    Pieces that are labelled −100 (special tokens, all pieces of a word but the first) are masked: the CRF goes from one
    first piece to the next. Without labels, `word_mask` [B, T] says which pieces are kept, see `word_mask`; without
    either, all that `attention_mask` has.
    """

    def __init__(
        self,
        encoder: nn.Module,
        *,
        labels: Sequence[str] | None = None,
        bigrams: BigramsLike = None,
        hidden_size: int | None = None,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.labels = _label_names(encoder) if labels is None else list(labels)
        self.encoder = encoder
        self.hidden_size = hidden_size
        self.dropout = nn.Dropout(dropout)
        self.classifier = None if hidden_size is None else nn.Linear(hidden_size, len(self.labels))
        self.crf = ChainCRF(labels=self.labels, bigrams=bigrams)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        word_mask: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **inputs: Any,
    ) -> TokenLabels:
        """`loss` = −log p(labels) by labelled token or `num_items_in_batch`; `logits`; `decoded` [B, T], −100 if masked.

        With a `word_mask`, the label of a kept word may be unknown, −100: it is summed over. All other inputs go to the
        encoder as they are.
        """
        emissions, rest = self._emissions(input_ids, attention_mask, token_type_ids, inputs)
        mask = _kept(emissions, attention_mask, labels, word_mask)
        found = TokenLabels()
        if labels is not None:
            found["loss"] = self._loss(emissions, labels, mask, num_items_in_batch)
        found["logits"] = emissions
        if not self.training:
            best = self.crf.decode(emissions.detach(), mask)
            found["decoded"] = torch.where(mask, best, IGNORED)
        found.update(rest)
        return found

    @torch.no_grad()
    def decode(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        word_mask: Tensor | None = None,
        **inputs: Any,
    ) -> Tensor:
        """The labels of the best label sequence [B, T]; −100 at masked pieces."""
        emissions, _ = self._emissions(input_ids, attention_mask, None, inputs)
        mask = _kept(emissions, attention_mask, None, word_mask)
        return torch.where(mask, self.crf.decode(emissions, mask), IGNORED)

    @torch.no_grad()
    def predict_spans(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        word_mask: Tensor | None = None,
        *,
        offset_mapping: Tensor | Sequence[Sequence[Sequence[int]]] | None = None,
        threshold: Threshold = "auto",
        decode: str | None = None,
        scheme: str | None = None,
        **inputs: Any,
    ) -> list[list[Span]]:
        """The spans (entities, chunks) of each sequence, sorted, with their exact probabilities.

        Which spans, by `threshold`, `decode` and `scheme`, is said as in `ChainCRF.predict_spans`. `start` and `end`
        (exclusive) are numbers of kept pieces: of words, with a `word_mask`. With the `offset_mapping` [B, T, 2] that a fast
        tokenizer gives for texts (not for lists of words), they are characters of the text.
        """
        emissions, _ = self._emissions(input_ids, attention_mask, None, inputs)
        mask = _kept(emissions, attention_mask, None, word_mask)
        found = self.crf.predict_spans(emissions, mask, threshold=threshold, decode=decode, scheme=scheme)
        word = (mask.long().cumsum(1) - 1).tolist()  # of each piece
        found = [
            [span._replace(start=row[span.start], end=row[span.end - 1] + 1) for span in spans]
            for spans, row in zip(found, word, strict=True)
        ]
        if offset_mapping is None:
            return found
        tokens = word_offsets(mask, offset_mapping)
        return [[span.in_characters(row) for span in spans] for spans, row in zip(found, tokens, strict=True)]

    def _emissions(
        self,
        input_ids: Tensor | None,
        attention_mask: Tensor | None,
        token_type_ids: Tensor | None,
        inputs: dict[str, Any],
    ) -> tuple[Tensor, dict[str, Any]]:
        """The scores of labels [B, T, L], and the other outputs of the encoder."""
        given = {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "token_type_ids": token_type_ids,
            **inputs,
        }
        output = self.encoder(**{name: value for name, value in given.items() if value is not None})
        name = "logits" if self.classifier is None else "last_hidden_state"
        scores = output if isinstance(output, Tensor) else getattr(output, name, None)
        if scores is None:
            hint = (
                "pass hidden_size=…, the size of its last_hidden_state"
                if self.classifier is None
                else "leave out hidden_size"
            )
            raise ArgumentError(f"the encoder returned no {name}: {hint}.")
        if self.classifier is not None:
            scores = self.classifier(self.dropout(scores))
        if scores.shape[-1] != len(self.labels):
            raise ShapeError(
                f"the encoder scores {scores.shape[-1]} labels, expected {len(self.labels)}: {self.labels[:5]} …."
            )
        asked = {key: getattr(output, key, None) for key in ("hidden_states", "attentions")}
        return scores, {key: value for key, value in asked.items() if value is not None}

    def _loss(self, emissions: Tensor, labels: Tensor, mask: Tensor, n_items: Tensor | int | None) -> Tensor:
        values = self.crf(emissions, labels, mask, reduction="none")  # [B]
        if self.crf.bigrams is not None and not torch.compiler.is_compiling():
            excluded = torch.isinf(values).nonzero().flatten().tolist()
            if excluded:
                raise ImpossibleLabelsError(
                    f"labels: the bigrams exclude the labels of sequence {excluded[0]} of the batch."
                )
        total = -values.sum()
        if n_items is not None:
            return total / n_items
        return total / (mask & (labels >= 0)).sum().clamp_min(1)

    @staticmethod
    def decoded_only(logits: Any, labels: Tensor) -> Tensor:
        """For `Trainer(preprocess_logits_for_metrics=…)`: metrics get `decoded` and not the logits."""
        return logits[1]

    @property
    def config(self) -> Any:
        """The configuration of the encoder."""
        return self.encoder.config

    def gradient_checkpointing_enable(self, **settings: Any) -> None:
        """Let the encoder forget what it can compute again."""
        self.encoder.gradient_checkpointing_enable(**settings)

    def gradient_checkpointing_disable(self) -> None:
        """Let the encoder keep everything."""
        self.encoder.gradient_checkpointing_disable()

    def save_pretrained(self, folder: str | Path, **settings: Any) -> None:
        """Write the encoder as transformers does, and the CRF beside it."""
        from safetensors.torch import save_file

        folder = Path(folder)
        self.encoder.save_pretrained(folder, **settings)
        tensors = {f"crf.{name}": value for name, value in self.crf.state_dict().items()}
        if self.crf.bigrams is not None:
            tensors["bigrams"] = self.crf.bigrams
        if self.classifier is not None:
            tensors |= {f"classifier.{name}": value for name, value in self.classifier.state_dict().items()}
        save_file(
            {name: value.detach().cpu().contiguous() for name, value in tensors.items()}, folder / PARAMETERS
        )
        known = {"labels": self.labels, "hidden_size": self.hidden_size, "dropout": self.dropout.p}
        (folder / SETTINGS).write_text(json.dumps(known, ensure_ascii=False, indent=1), encoding="utf-8")

    @classmethod
    def from_pretrained(
        cls, folder: str | Path, encoder: nn.Module | None = None, **settings: Any
    ) -> "CRFForTokenClassification":
        """What `save_pretrained` wrote. Without an `encoder`, transformers loads the one that lies there with `settings`."""
        from safetensors.torch import load_file

        folder = Path(folder)
        known = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        if encoder is None:
            import transformers

            auto_class = "AutoModelForTokenClassification" if known["hidden_size"] is None else "AutoModel"
            encoder = getattr(transformers, auto_class).from_pretrained(folder, **settings)
        tensors = load_file(folder / PARAMETERS)
        model = cls(encoder, bigrams=tensors.pop("bigrams", None), **known)
        missing, unknown = model.load_state_dict(tensors, strict=False)
        left = [name for name in missing if not name.startswith("encoder.")]
        if left or unknown:
            raise FileFormatError(
                f"{folder / PARAMETERS}: {', '.join(left or unknown)} should not be {'missing' if left else 'there'}."
            )
        return model.to(next(encoder.parameters()).device)


def word_mask(encoding: Any) -> Tensor:
    """Which pieces are the first of a word, bools [B, T]: of what a fast tokenizer gives with `is_split_into_words=True`."""
    rows = [encoding.word_ids(b) for b in range(len(encoding["input_ids"]))]
    return torch.tensor(
        [[word is not None and (t == 0 or word != row[t - 1]) for t, word in enumerate(row)] for row in rows]
    )


def word_offsets(
    mask: Tensor, offset_mapping: Tensor | Sequence[Sequence[Sequence[int]]]
) -> list[list[tuple[int, int]]]:
    """(begin, end) of the words in the characters of each text: of a kept piece and the masked ones that continue it.

    `mask` [B, T] has the first piece of each word; the `offset_mapping` [B, T, 2] has (0, 0) for special tokens.
    """
    offsets = torch.as_tensor(offset_mapping)
    if offsets.shape != (*mask.shape, 2):
        raise ShapeError(
            f"offset_mapping: got shape {list(offsets.shape)}, expected [B, T, 2] = {[*mask.shape, 2]}."
        )
    found: list[list[tuple[int, int]]] = []
    for kept, row in zip(mask.tolist(), offsets.tolist(), strict=True):
        words: list[tuple[int, int]] = []
        goes_on = False  # the word may have more pieces
        for is_first, (begin, end) in zip(kept, row, strict=True):
            if is_first:
                words.append((begin, end))
            elif goes_on and begin < end:
                words[-1] = (words[-1][0], end)
            goes_on = is_first or (goes_on and begin < end)
        found.append(words)
    return found


def _label_names(encoder: nn.Module) -> list[str]:
    """The names of labels in the order of their ids."""
    names: Mapping[Any, str] | None = getattr(getattr(encoder, "config", None), "id2label", None)
    if not names:
        raise ArgumentError(
            "labels: the encoder has no config.id2label, pass labels=[…], the name of each label."
        )
    return [name for _, name in sorted((int(number), name) for number, name in names.items())]


def _kept(
    emissions: Tensor, attention_mask: Tensor | None, labels: Tensor | None, word_mask: Tensor | None
) -> Tensor:
    """Which pieces the CRF sees, [B, T]."""
    if attention_mask is not None and attention_mask.ndim == 2:
        check_layout("attention_mask", attention_mask, emissions)
    check_layout("word_mask", word_mask, emissions)
    check_layout("labels", labels, emissions)
    mask = torch.ones(emissions.shape[:2], dtype=torch.bool, device=emissions.device)
    if attention_mask is not None and attention_mask.ndim == 2:
        mask = mask & attention_mask.bool()
    if word_mask is not None:
        return mask & word_mask.to(mask.device).bool()
    return mask if labels is None else mask & (labels >= 0)
