"""The component of spaCy: its answers are those of the library, and pipelines are trained, saved and loaded with it."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from typing import Any

import pytest

import crfkit
from crfkit import CRF, Lemmatizer, Parser, Pipeline, TreebankTagger, errors

spacy = pytest.importorskip("spacy", reason='needs spaCy: pip install ".[spacy]"')

from spacy.tokens import Doc, DocBin
from spacy.training import Example

from crfkit.integrations.spacy import CRFComponent, docs_to_sentences, docs_to_sequences, train
from crfkit.integrations.spacy.annotation import set_trees

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:.*W0")

TEXTS = [
    ("Ann Lee saw Rome.", [(0, 7, "PER"), (12, 16, "LOC")]),
    ("Tom slept in New York.", [(0, 3, "PER"), (13, 21, "LOC")]),
    ("Rome is far from Paris.", [(0, 4, "LOC"), (17, 22, "LOC")]),
    ("Sue Lee met Tom.", [(0, 7, "PER"), (12, 15, "PER")]),
]


def nlp_with(**config: Any) -> Any:
    nlp = spacy.blank("en")
    nlp.add_pipe("crfkit", config=config)
    return nlp


def named_docs(nlp: Any) -> list[Any]:
    docs = []
    for text, spans in TEXTS:
        doc = nlp.make_doc(text)
        doc.set_ents([doc.char_span(*span) for span in spans])
        docs.append(doc)
    return docs


def tree_docs(vocab: Any) -> list[Any]:
    pairs = (("Dogs", "bark"), ("Cats", "sleep"), ("Cows", "eat"), ("Birds", "sing"))
    return [
        Doc(
            vocab,
            words=[adjective, subject.lower(), verb, "."],
            spaces=[True, True, False, False],
            pos=["ADJ", "NOUN", "VERB", "PUNCT"],
            tags=["JJ", "NNS", "VBP", "."],
            lemmas=[adjective.lower(), subject.lower()[:-1], verb, "."],
            morphs=["", "Number=Plur", "", ""],
            heads=[1, 2, 2, 2],
            deps=["amod", "nsubj", "ROOT", "punct"],
        )
        for subject, verb in pairs
        for adjective in ("Big", "Small")
    ]


def entities(doc: Any) -> list[tuple[int, int, str]]:
    return [(entity.start_char, entity.end_char, entity.label_) for entity in doc.ents]


@pytest.fixture(scope="module")
def trained() -> Any:
    """A pipeline with a component that learned the names of the texts."""
    nlp = nlp_with(likely=0.01, spans_key="names")
    nlp.get_pipe("crfkit").model = CRF(features="names", l2=0.05)
    nlp.get_pipe("crfkit").fit(named_docs(nlp))
    return nlp


def test_entities_and_their_probabilities_are_those_of_the_library(trained: Any) -> None:
    crf = trained.get_pipe("crfkit").model
    for text, spans in TEXTS:
        doc = trained(text)
        assert entities(doc) == spans
        words = [[(token.text,) for token in doc]]
        [best] = crf.predict_spans(words, decode="viterbi")
        assert [entity._.probability for entity in doc.ents] == [span.probability for span in best]
        [likely] = crf.predict_spans(words, 0.01)
        assert doc._.crfkit_spans == sorted({*likely, *best}, key=lambda span: (*span[:2], span.label))
        assert [(s.start, s.end, s.label_) for s in doc.spans["names"]] == [
            tuple(s[:3]) for s in doc._.crfkit_spans
        ]
    assert trained.get_pipe("crfkit").labels == ("LOC", "PER")
    assert doc[0:1]._.probability is None or doc[0:1].label_


def test_batches_give_the_same(trained: Any) -> None:
    texts = [text for text, _ in TEXTS] * 3 + ["", " \n ", "Nothing here"]
    one = [trained(text) for text in texts]
    many = list(trained.pipe(texts, batch_size=4))
    assert [doc.text for doc in many] == texts
    for a, b in zip(one, many, strict=True):
        assert entities(a) == entities(b)
        assert a._.crfkit_spans == b._.crfkit_spans


def test_pipelines_are_saved_and_loaded(trained: Any, tmp_path: Path) -> None:
    trained.to_disk(tmp_path / "pipeline")
    loaded = spacy.load(tmp_path / "pipeline")
    copied = spacy.blank("en")
    copied.add_pipe("crfkit")
    copied.from_bytes(trained.to_bytes())
    same = crfkit.load(tmp_path / "pipeline" / "crfkit" / "model.crf")
    weights = trained.get_pipe("crfkit").model.weights_.tobytes()
    assert same.weights_.tobytes() == weights
    for nlp in (loaded, copied):
        component = nlp.get_pipe("crfkit")
        assert component.model.weights_.tobytes() == weights
        assert component.likely == 0.01
        for text, _ in TEXTS:
            assert entities(nlp(text)) == entities(trained(text))
            assert nlp(text)._.crfkit_spans == trained(text)._.crfkit_spans


def test_a_pipeline_without_a_model_is_saved_too(tmp_path: Path) -> None:
    nlp = nlp_with(annotates="tag")
    nlp.to_disk(tmp_path / "empty")
    component = spacy.load(tmp_path / "empty").get_pipe("crfkit")
    assert component.model is None
    assert component.annotates == "tag"
    assert component.labels == ()
    with pytest.raises(crfkit.models.NotFittedError, match="the component 'crfkit' has no model"):
        nlp("text")


def test_the_model_of_a_config_is_a_file(trained: Any, tmp_path: Path) -> None:
    path = tmp_path / "names.crf"
    trained.get_pipe("crfkit").model.save(path)
    nlp = nlp_with(model=str(path), threshold=0.999999)
    assert nlp(TEXTS[0][0]).ents == ()  # none is that likely
    assert nlp_with(model=str(path))(TEXTS[0][0]).ents
    nlp.to_disk(tmp_path / "pipeline")
    path.unlink()
    assert (
        spacy.load(tmp_path / "pipeline").get_pipe("crfkit").model is not None
    )  # which lies in the pipeline
    with pytest.raises(FileNotFoundError, match=r"names\.crf"):
        nlp_with(model=str(path))("Rome")


def test_initialize_trains_and_evaluate_scores(trained: Any) -> None:
    nlp = nlp_with()
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in named_docs(nlp)]
    nlp.initialize(lambda: examples)
    direct = train(named_docs(nlp))
    assert nlp.get_pipe("crfkit").model.weights_.tobytes() == direct.weights_.tobytes()
    scores = nlp.evaluate(examples)
    X, y = docs_to_sequences(named_docs(nlp))
    assert scores["ents_f"] == pytest.approx(direct.score(X, y))
    assert set(scores["ents_per_type"]) == {"LOC", "PER"}
    before = direct.weights_.tobytes()
    nlp.initialize()  # without examples there is nothing to learn: the model stays
    assert nlp.get_pipe("crfkit").model.weights_.tobytes() == before


def test_entities_of_others_stay_without_overwrite(trained: Any) -> None:
    model = trained.get_pipe("crfkit").model
    doc = trained.make_doc(TEXTS[0][0])
    doc.set_ents([doc.char_span(0, 3, "GIVEN")])
    CRFComponent(model, overwrite=False)(doc)
    assert entities(doc) == [(0, 3, "GIVEN"), (12, 16, "LOC")]
    CRFComponent(model)(doc)
    assert entities(doc) == TEXTS[0][1]
    assert [token.ent_iob_ for token in doc] == ["B", "I", "O", "B", "O"]


def test_white_space_and_sentences(trained: Any) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    component = CRFComponent(trained.get_pipe("crfkit").model)
    doc = component(nlp("Ann Lee  saw Rome.\n\nTom slept in New York."))
    assert any(token.is_space for token in doc)
    assert [entity.text for entity in doc.ents] == ["Ann Lee", "Rome", "Tom", "New York"]
    X, y = docs_to_sequences([doc])
    assert [len(x) for x in X] == [5, 6]
    assert y[0] == ["B-PER", "I-PER", "O", "B-LOC", "O"]


def test_what_is_not_annotated_is_unknown() -> None:
    nlp = spacy.blank("en")
    doc = nlp("Ann saw Rome")
    doc.set_ents([doc.char_span(0, 3, "PER")], missing=[doc[2:3]], default="outside")
    assert docs_to_sequences([doc])[1] == [["B-PER", "O", None]]
    with pytest.raises(errors.EmptyDataError, match="the documents have no entities to learn from"):
        train([nlp("no names")])


def test_probabilities_survive_a_docbin(trained: Any) -> None:
    docs = [trained(text) for text, _ in TEXTS]
    data = DocBin(docs=docs, store_user_data=True).to_bytes()
    for before, after in zip(docs, DocBin().from_bytes(data).get_docs(trained.vocab), strict=True):
        assert after._.crfkit_spans == before._.crfkit_spans
        assert [e._.probability for e in after.ents] == [e._.probability for e in before.ents]


def test_tags() -> None:
    nlp = nlp_with(annotates="tag", columns=["text", "shape_"])
    docs = tree_docs(nlp.vocab)
    nlp.get_pipe("crfkit").model = CRF(features="chunks")  # which reads two columns
    component = nlp.get_pipe("crfkit").fit(docs, dev=docs)
    doc = nlp("Big dogs sing.")
    assert [token.tag_ for token in doc] == ["JJ", "NNS", "VBP", "."]
    X = [[(token.text, token.shape_) for token in doc]]
    [table] = component.model.predict_marginals(X)
    assert [token._.tag_probability for token in doc] == pytest.approx(table.max(axis=1))
    examples = [Example(nlp.make_doc(doc.text), doc) for doc in docs]
    assert nlp.evaluate(examples)["tag_acc"] == 1.0
    universal = CRFComponent(train(docs, annotates="pos"))  # known by its labels
    assert [token.pos_ for token in universal(nlp.make_doc("Small cats bark."))] == [
        "ADJ",
        "NOUN",
        "VERB",
        "PUNCT",
    ]


def test_features_of_tokens_without_a_template() -> None:
    nlp = nlp_with(columns=["lower_", "is_title"])
    component = nlp.get_pipe("crfkit")
    component.model = CRF(l2=0.05)
    component.fit(named_docs(nlp))
    assert [entity.text for entity in nlp("Sue Lee saw Rome.").ents] == ["Sue Lee", "Rome"]
    component.columns = ["nosuch"]
    with pytest.raises(errors.ArgumentError, match=r"columns: .*nosuch"):
        nlp("Rome")


def test_trees(tmp_path: Path) -> None:
    nlp = nlp_with(annotates="parse")
    nlp.get_pipe("crfkit").model = Parser(columns=["form"])  # there are no tags before it
    docs = tree_docs(nlp.vocab)
    nlp.initialize(lambda: [Example(nlp.make_doc(doc.text), doc) for doc in docs])
    parser = nlp.get_pipe("crfkit").model
    assert isinstance(parser, Parser)
    for text in ("Small dogs sing.", "  Small  dogs sing.\n"):
        doc = nlp(text)
        words = [token for token in doc if not token.is_space]
        assert [token.head.text for token in words] == ["dogs", "sing", "sing", "sing"]
        assert [token.dep_ for token in words] == ["amod", "nsubj", "ROOT", "punct"]
        assert len(list(doc.sents)) == 1
        assert doc.has_annotation("DEP")
    [table] = parser.arc_probabilities(docs_to_sentences([nlp.make_doc("Small dogs sing.")]))
    doc = nlp("Small dogs sing.")
    sure = [table[0 if t.head.i == t.i else t.head.i + 1, t.i + 1] for t in doc]
    assert [token._.head_probability for token in doc] == pytest.approx(sure, abs=1e-4)
    scores = nlp.evaluate([Example(nlp.make_doc(doc.text), doc) for doc in docs])
    assert scores["dep_las"] == 1.0
    nlp.to_disk(tmp_path / "parser")
    again = spacy.load(tmp_path / "parser")("Small dogs sing.")
    assert [token.head.i for token in again] == [token.head.i for token in doc]


@pytest.mark.parametrize("model", [TreebankTagger("upos+feats"), Lemmatizer(), Pipeline(folds=2)], ids=repr)
def test_models_of_treebanks(model: Any, tmp_path: Path) -> None:
    vocab = spacy.blank("en").vocab
    docs = tree_docs(vocab)
    sentences = docs_to_sentences(docs)
    assert [word.head for word in sentences[0].words] == [2, 3, 0, 3]
    assert sentences[0].words[2].misc == "SpaceAfter=No"
    component = CRFComponent(model).fit(docs)
    component.to_disk(tmp_path / "component")
    loaded = CRFComponent().from_disk(tmp_path / "component")
    given = {"pos": ["ADJ", "NOUN", "VERB", "PUNCT"]} if isinstance(model, Lemmatizer) else {}
    for one in (component, loaded):
        doc = one(Doc(vocab, words=["Big", "dogs", "sing", "."], **given))
        if not isinstance(model, Lemmatizer):
            assert [token.pos_ for token in doc] == ["ADJ", "NOUN", "VERB", "PUNCT"]
            assert str(doc[1].morph) == "Number=Plur"
            assert all(0.0 < token._.tag_probability <= 1.0 for token in doc)
        if not isinstance(model, TreebankTagger):
            assert [token.lemma_ for token in doc] == ["big", "dog", "sing", "."]
        if isinstance(model, Pipeline):
            assert [token.head.i for token in doc] == [1, 2, 2, 2]
            assert all(0.0 < token._.head_probability <= 1.0 for token in doc)


@pytest.mark.parametrize("n_before", [0, 1, 2, 3])
def test_white_space_before_the_first_word_is_part_of_its_tree(n_before: int) -> None:
    words = [*["\n"] * n_before, "dogs", "\n", "\n", "bark", "\n"]
    doc = Doc(spacy.blank("en").vocab, words=words)
    tree = [crfkit.data.Word("dogs", head=2, deprel="nsubj"), crfkit.data.Word("bark", head=0, deprel="root")]
    k = n_before
    set_trees(doc, [([doc[k], doc[k + 3]], tree)])
    assert [token.head.i for token in doc] == [*[k] * k, k + 3, k, k + 1, k + 3, k + 3]
    assert len(list(doc.sents)) == 1


def test_errors_go_to_the_handler_of_spacy(trained: Any) -> None:
    nlp = nlp_with()
    seen: list[str] = []
    nlp.set_error_handler(lambda name, component, docs, error: seen.append(f"{name}: {len(docs)}"))
    assert list(nlp.pipe(["a", "b"])) == []
    assert sum(int(text.partition(": ")[2]) for text in seen) == 2


def test_bad_arguments(trained: Any) -> None:
    with pytest.raises(errors.ArgumentError, match="annotates is 'names', expected auto, entities"):
        CRFComponent(annotates="names")
    with pytest.raises(errors.ArgumentError, match="annotates is 'names', expected one of entities"):
        train([], annotates="names")
    with pytest.raises(errors.ArgumentError, match="model is of type int"):
        train([], 3)
    for model in (None, Parser()):
        with pytest.raises(errors.ArgumentError, match="a document is of type str, expected a Doc"):
            train(["Ann saw Rome"], model)
    with pytest.raises(errors.ArgumentError, match="the model is of type int"):
        CRFComponent(3)(trained.make_doc("a"))
    with pytest.raises(errors.EmptyDataError, match="no documents"):
        train([], annotates="parse")


def test_the_entry_point_is_the_factory() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    module, _, name = project["entry-points"]["spacy_factories"]["crfkit"].partition(":")
    assert callable(getattr(importlib.import_module(module), name))
