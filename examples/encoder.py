"""Words in their sentence as vectors: embeddings, affixes and a character CNN under a BiLSTM (Ma and Hovy 2016)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from examples.sentences import PADDING, UNKNOWN, Batch, Vocabulary


class CharacterCNN(nn.Module):
    """A word from its characters: a convolution over three of them at a time, and the largest of each filter."""

    def __init__(self, n_characters: int, size: int, n_filters: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_characters, size, padding_idx=PADDING)
        self.convolution = nn.Conv1d(size, n_filters, kernel_size=3, padding=1)

    def forward(self, characters: Tensor) -> Tensor:
        """[B, T, C] → [B, T, filters]."""
        B, T, C = characters.shape
        flat = self.embedding(characters.view(B * T, C)).transpose(1, 2)  # [B·T, size, C]
        return self.convolution(flat).amax(-1).view(B, T, -1)


class Encoder(nn.Module):
    """Vectors of words, [B, T, `size`], which may see their affixes, or their parts of speech and morphology, as well."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        hidden: int,
        n_layers: int,
        dropout: float,
        *,
        with_affixes: bool = False,
        with_tags: bool = False,
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(len(vocabulary.words), 100, padding_idx=PADDING)
        self.characters = CharacterCNN(len(vocabulary.characters), 50, 100)
        self.affixes, self.tags = (
            nn.ModuleList(nn.Embedding(len(index), 50, padding_idx=PADDING) for index in indices if seen)
            for indices, seen in ((vocabulary.affixes, with_affixes), (vocabulary.tags, with_tags))
        )
        n_inputs = 100 + 100 + 50 * (len(self.affixes) + len(self.tags))
        self.lstm = nn.LSTM(
            n_inputs, hidden, n_layers, batch_first=True, bidirectional=True, dropout=dropout * (n_layers > 1)
        )
        self.dropout = nn.Dropout(dropout)
        self.size = 2 * hidden

    def forward(self, batch: Batch) -> Tensor:
        """[B, T, size]."""
        words = batch.words
        if self.training:  # words that are not known must be seen in training
            words = words.masked_fill(torch.rand(words.shape, device=words.device) < 0.1, UNKNOWN)
        parts = [self.words(words), self.characters(batch.characters)]
        parts += [embedding(batch.affixes[:, :, k]) for k, embedding in enumerate(self.affixes)]
        parts += [embedding(batch.tags[:, :, k]) for k, embedding in enumerate(self.tags)]
        packed = pack_padded_sequence(
            self.dropout(torch.cat(parts, -1)), batch.lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        self.lstm.flatten_parameters()  # a copy, such as the averaged network, has them apart
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=words.shape[1])
        return self.dropout(states)
