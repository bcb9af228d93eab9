"""Sentences of the tokens that were found in a text."""

from crfkit.data import Multiword, Sentence, Word
from crfkit.pipeline.multiwords import MultiwordSplitter
from crfkit.pipeline.paragraphs import Paragraph
from crfkit.pipeline.token_labels import Tokens
from crfkit.pipeline.written_text import NOT_SPACED, escape, space_items


class SentenceBuilder:
    """Makes the sentences of a text, numbered from 1; MISC keeps all white space."""

    def __init__(self, splitter: MultiwordSplitter, *, ranges: bool = False) -> None:
        self._splitter = splitter
        self._ranges = ranges
        self._number = 0

    def build(self, paragraph: Paragraph, tokens: Tokens, end: int) -> list[Sentence]:
        """The sentences of a paragraph; its tokens cover the first `end` characters."""
        nexts = [*tokens.starts[1:], end]
        found = []
        for k, (first, last) in enumerate(tokens.spans()):
            self._number += 1
            comments = ["# newpar"] if paragraph.begins and k == 0 else []
            text = paragraph.text[tokens.starts[first] : tokens.ends[last - 1]]
            comments += [f"# sent_id = {self._number}", f"# text = {' '.join(text.split())}"]
            sentence = Sentence([], comments=comments, line=1, source="<text>")
            for i in range(first, last):
                misc = self._misc(paragraph, tokens, i, nexts[i])
                form = paragraph.text[tokens.starts[i] : tokens.ends[i]]
                self._add(sentence, form, misc, multiword=tokens.multiword[i])
            if tokens.probabilities is not None:
                probability = min(tokens.sentence_probabilities[k], 1.0)
                sentence.comments.append(f"# sentence_probability = {probability:.4f}")
            found.append(sentence)
        return found

    def _misc(self, paragraph: Paragraph, tokens: Tokens, i: int, following: int) -> str:
        """The MISC column of a token; the next one begins at `following`."""
        start, end = tokens.starts[i], tokens.ends[i]
        before = paragraph.spaces_before if i == 0 else ""
        if end == following and not before:
            items = [NOT_SPACED]
        else:
            items = space_items(paragraph.text[end:following], before)
        form = paragraph.text[start:end]
        if form != " ".join(form.split()):
            items.append(f"SpacesInToken={escape(form)}")
        if self._ranges:
            items.append(f"TokenRange={paragraph.start + start}:{paragraph.start + end}")
        if tokens.probabilities is not None:
            items.append(f"TokenProb={min(tokens.probabilities[i], 1.0):.4f}")
        return "|".join(items) or "_"

    def _add(self, sentence: Sentence, form: str, misc: str, *, multiword: bool) -> None:
        """Append a token to a sentence: its word, or its words."""
        form = " ".join(form.split())
        words = self._splitter.split(form) if multiword else None
        if words is None or len(words) == 1:
            sentence.words.append(Word(form, misc=misc))
            return
        first = len(sentence.words) + 1
        sentence.words.extend(Word(word) for word in words)
        sentence.multiwords.append(Multiword(first, first + len(words) - 1, form, misc))
