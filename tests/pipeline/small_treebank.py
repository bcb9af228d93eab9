"""A small made-up treebank with every column, multiword tokens, paragraphs and text."""

from __future__ import annotations

import random

from crfkit.data import Multiword, Sentence, Word

NOUNS = ["dog", "cat", "bird", "child", "farmer", "horse", "teacher", "letter"]
VERBS = ["see", "like", "call", "paint", "visit", "help"]
ADJECTIVES = ["old", "small", "green", "quiet"]
NO_SPACE = "SpaceAfter=No"


def plural(noun: str) -> str:
    return "children" if noun == "child" else noun + "s"


def _phrase(words: list[Word], number: random.Random, head: int, relation: str) -> bool:
    """Append a noun phrase whose noun hangs on `head` (0: on itself later); whether it is plural."""
    noun, many = number.choice(NOUNS), number.random() < 0.5
    has_adjective = number.random() < 0.4
    place = len(words) + 2 + has_adjective
    words.append(Word("the", "the", "DET", "DT", "Definite=Def|PronType=Art", place, "det"))
    if has_adjective:
        adjective = number.choice(ADJECTIVES)
        words.append(Word(adjective, adjective, "ADJ", "JJ", "Degree=Pos", place, "amod"))
    form, xpos = (plural(noun), "NNS") if many else (noun, "NN")
    words.append(Word(form, noun, "NOUN", xpos, f"Number={'Plur' if many else 'Sing'}", head, relation))
    return many


def make_sentence(number: random.Random) -> Sentence:
    words: list[Word] = []
    multiwords = []
    many = _phrase(words, number, 0, "nsubj")
    subject = len(words)
    verb = number.choice(VERBS)
    if number.random() < 0.4:
        first, auxiliary = len(words) + 1, "do" if many else "does"
        place = first + 2
        words.append(Word(auxiliary, "do", "AUX", "VBP" if many else "VBZ", "VerbForm=Fin", place, "aux"))
        words.append(Word("n't", "not", "PART", "RB", "_", place, "advmod"))
        multiwords.append(Multiword(first, first + 1, f"{auxiliary}n't", "_"))
        words.append(Word(verb, verb, "VERB", "VB", "VerbForm=Inf", 0, "root"))
    else:
        form, xpos = (verb, "VBP") if many else (verb + "s", "VBZ")
        words.append(Word(form, verb, "VERB", xpos, "VerbForm=Fin", 0, "root"))
    root = len(words)
    words[subject - 1] = words[subject - 1]._replace(head=root)
    _phrase(words, number, root, "obj")
    words[-1] = words[-1]._replace(misc=NO_SPACE)
    mark = number.choice([".", "!", "?"])
    words.append(Word(mark, mark, "PUNCT", ".", "_", root, "punct"))
    words[0] = words[0]._replace(form="The")
    return Sentence(words, multiwords)


def make_treebank(n: int, seed: int = 1, paragraph: int = 5) -> list[Sentence]:
    """`n` sentences, with a paragraph after every few of them."""
    number = random.Random(seed)
    found = []
    for i in range(n):
        sentence = make_sentence(number)
        if i % paragraph == 0:
            sentence.comments.append("# newpar")
        found.append(sentence)
    return found


def bare(sentence: Sentence) -> Sentence:
    """The words alone, with their white space."""
    words = [Word(word.form, misc=word.misc) for word in sentence.words]
    return Sentence(words, sentence.multiwords)
