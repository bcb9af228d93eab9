"""Models of dependency trees: `Parser`, and `Pipeline`, which cuts and tags texts itself."""

import io
import re
import warnings
from collections.abc import Sequence
from typing import Any

from crfkit.data import Sentence, Word, write_conllu
from crfkit.models import Parser
from crfkit.pipeline import Pipeline, sentence_to_json
from crfkit.report import draw_tree
from crfkit.serve.errors import too_large, unanswerable
from crfkit.serve.given import Document, Given, Item
from crfkit.serve.limits import Limits
from crfkit.serve.question import Question
from crfkit.serve.served.model import Names, Sentences, ServedModel, only_item

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")

CHARACTERS = 4  # of a token, about: what texts that are not cut yet are counted by
COLUMNS = ("form", "lemma", "upos", "xpos", "feats")


class ServedParser(ServedModel):
    """A `Parser`: words of a treebank, with the tags that it reads, become trees."""

    kind = "a parser"
    questions: Names = ("parse", "nbest", "explain")
    forms: Names = ("words", "tokens")

    def __init__(self, parser: Parser, limits: Limits) -> None:
        super().__init__(limits)
        self.parser = parser

    def describe(self) -> dict[str, Any]:
        """What /models says of it."""
        return self.description(labels=self.parser.classes_, structure=self.parser.structure_)

    def longest(self) -> int:
        """Tokens that a sentence may have."""
        return self.limits.max_tree

    def read(self, given: Given) -> list[Document]:
        """The input of a request as the model reads it."""
        return [[read_words(given.form, n, words)] for n, words in enumerate(given.values)]

    def answer(self, question: Question, items: Sequence[Item]) -> list[Sentences]:
        """The answer for each item."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of columns that the words do not have
            if question.name == "explain":
                return [[explain_arc(self.parser, question, only_item(question, items).inputs)]]
            sentences = [item.inputs for item in items]
            if question.name == "nbest":
                return [[{"nbest": best}] for best in best_trees(self.parser, sentences, question.n)]
            found = self.parser.predict(sentences, decode=question.decode)
            answers = [tree_json(sentence, question) for sentence in found]
            if question.probabilities:
                tables = self.parser.arc_probabilities(sentences)
                for answer, sentence, table in zip(answers, found, tables, strict=True):
                    for number, word in enumerate(sentence.words, 1):
                        answer["words"][number - 1]["head_probability"] = min(
                            float(table[word.head, number]), 1.0
                        )
            return [[answer] for answer in answers]


class ServedPipeline(ServedModel):
    """A `Pipeline`: raw text to trees."""

    kind = "a pipeline"
    questions: Names = ("tag", "parse", "nbest", "explain")
    forms: Names = ("texts", "tokens", "words")

    def __init__(self, pipeline: Pipeline, limits: Limits) -> None:
        super().__init__(limits)
        self.pipeline = pipeline
        parsers = [part for part in pipeline.components_ if isinstance(part, Parser)]
        self.parser = parsers[-1] if parsers else None
        if self.parser is None:
            self.questions = ("tag",)
        if pipeline.tokenizer_ is None:
            self.forms = ("tokens", "words")

    def describe(self) -> dict[str, Any]:
        """What /models says of it."""
        labels = [] if self.parser is None else self.parser.classes_
        return self.description(labels=labels, components=self.pipeline.describe().splitlines())

    def longest(self) -> int:
        """Tokens that a sentence may have."""
        return self.limits.max_tokens  # texts are cut when they are answered, and the sentences checked then

    def read(self, given: Given) -> list[Document]:
        """The input of a request as the model reads it."""
        if given.form != "texts":
            return [[read_words(given.form, n, words)] for n, words in enumerate(given.values)]
        return [[Item(1 + len(text) // CHARACTERS, text)] for text in given.values]

    def answer(self, question: Question, items: Sequence[Item]) -> list[Sentences]:
        """The answer for each item."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of columns that the words do not have
            documents = [self._cut(item) for item in items]
            if question.name == "explain":
                return [[self._explain(question, documents)]]
            answers = iter(self._answer(question, [sentence for found in documents for sentence in found]))
            return [[next(answers) for _ in found] for found in documents]

    def _cut(self, item: Item) -> list[Sentence]:
        """The sentences of a text, or the one that was given."""
        if isinstance(item.inputs, Sentence):
            found = [item.inputs]
        else:
            assert self.pipeline.tokenizer_ is not None  # or texts are no form of input
            found = self.pipeline.tokenizer_.predict(item.inputs, ranges=True)
        for sentence in found:
            if len(sentence.words) > self.limits.max_tree:
                raise too_large(
                    f"a sentence has {len(sentence.words):,} words, expected at most {self.limits.max_tree:,}: "
                    f"{' '.join(word.form for word in sentence.words[:5])} …"
                )
        return found

    def _answer(self, question: Question, sentences: list[Sentence]) -> Sentences:
        if question.name == "nbest":
            assert self.parser is not None  # or it does not answer
            found = self.pipeline.predict(sentences)
            return [{"nbest": best} for best in best_trees(self.parser, found, question.n)]
        if question.decode is not None:
            raise unanswerable("decode is for parsers; a pipeline has a setting of its own")
        found = self.pipeline.predict(sentences, probabilities=question.probabilities)
        return [tree_json(sentence, question) for sentence in found]

    def _explain(self, question: Question, documents: list[list[Sentence]]) -> dict[str, Any]:
        assert self.parser is not None
        items = [Item(len(sentence.words), sentence) for found in documents[:1] for sentence in found]
        [sentence] = self.pipeline.predict([only_item(question, items).inputs])
        return explain_arc(self.parser, question, sentence)


def read_words(form: str, n: int, words: list[Any]) -> Item:
    """Words of a request as a sentence."""
    if form == "tokens":
        return Item(len(words), Sentence([Word(_form(word, n, i)) for i, word in enumerate(words)]))
    found = []
    for i, word in enumerate(words):
        columns: dict[str, Any] = {}
        for name, value in word.items():
            if name not in COLUMNS or not isinstance(value, str):
                raise unanswerable(
                    f"words[{n}][{i}] has {str(name)[:40]!r} that is unknown or no string, "
                    f"expected strings {', '.join(COLUMNS)}"
                )
            columns[name] = value or "_"
        _form(columns["form"], n, i)
        found.append(Word(**columns))
    return Item(len(found), Sentence(found))


def _form(form: str, n: int, i: int) -> str:
    if not form.strip() or "\t" in form or "\n" in form or "\r" in form:
        raise unanswerable(f"sentence {n}, word {i} is empty or has a tab or a line break")
    return form


def tree_json(sentence: Sentence, question: Question) -> dict[str, Any]:
    """A sentence with its tree as JSON, with a picture and CoNLL-U where they are asked for."""
    found = sentence_to_json(sentence)
    for word in found["words"]:
        for item in str(word.pop("misc", "")).split("|"):
            name, equals, value = item.partition("=")
            if equals and name.endswith("Prob"):
                column = _CAPITAL.sub("_", name.removesuffix("Prob")).lower()  # UposFeats → upos_feats
                word[f"{column}_probability"] = float(value)
    if question.svg:
        found["svg"] = draw_tree(sentence).svg
    if question.conllu:
        text = io.StringIO()
        write_conllu([sentence], text)
        found["conllu"] = text.getvalue()
    return found


def best_trees(parser: Parser, sentences: list[Sentence], n: int) -> list[list[dict[str, Any]]]:
    """The n best trees of each sentence."""
    return [
        [
            {
                "probability": scored.probability,
                "heads": [word.head for word in scored.sentence.words],
                "labels": [word.deprel for word in scored.sentence.words],
            }
            for scored in best
        ]
        for best in parser.predict_nbest(sentences, n)
    ]


def explain_arc(parser: Parser, question: Question, sentence: Sentence) -> dict[str, Any]:
    """Why a word has its head; `label` and `against` are numbers of heads, 0 is the root."""
    heads = []
    for head in (question.label, question.against):
        if head is not None and (not isinstance(head, int) or not 0 <= head <= len(sentence.words)):
            raise unanswerable(f"a head is no whole number from 0 to {len(sentence.words)}")
        heads.append(head)
    explanation = parser.explain_arc(sentence, question.position + 1, *heads)
    return {"words": [word.form for word in sentence.words], "explanation": explanation.to_dict()}
