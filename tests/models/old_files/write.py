"""Writes the model files and checkpoints of this folder, with the answers that belong to them.

    python -m tests.models.old_files.write COMMIT

What lies here was written by crfkit 0.1.0 at commit e04e23b, by its interface; later versions have other names, so do not
run this again: the files are to stay as they are. `test_old_files.py` opens them with the present code. Each model file has
a JSON file beside it with the input, the answers and the version.
"""

from __future__ import annotations

import dataclasses
import io
import json
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import crfkit
from tests.models.old_files import functions as own
from tests.models.old_files.test_old_files import formed

FOLDER = Path(__file__).parent
WORDS = {"N": ["dog", "cat", "house"], "V": ["runs", "sees", "eats"], "D": ["the", "a"]}
SPLIT = 10  # sequences to train on; the rest is new
HALF, WHOLE = 4, 8  # iterations before the checkpoint, and in all
LAST = 2  # so many sequences are asked for marginals and the best label sequences
INPUTS: list[Any] = []
kit: Any = crfkit  # as it was: type checkers know the names of now


class Kind(NamedTuple):
    """A model to train, and the input to train and to ask it with."""

    params: dict[str, Any]
    X: list[Any]  # JSON values
    y: list[list[Any]]
    form: str = "plain"  # what becomes of X before a model sees it: see `test_old_files.formed`
    functions: Sequence[str] = ()  # of `functions.py`, for `load`
    allowed: list[Any] | None = None
    single_precision: bool = False


def sentences(n: int = SPLIT + 2, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences D N V D N with words left out, and now and then a wrong word."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        labels = [label for label in "DNVDN" if random.random() < 0.85] or ["N"]
        noisy = [label if random.random() < 0.85 else str(random.choice(list("DNV"))) for label in labels]
        X.append([str(random.choice(WORDS[label])) for label in noisy])
        y.append(labels)
    return X, y


def renamed(y: list[list[str]], names: dict[str, Any]) -> list[list[Any]]:
    return [[names[label] for label in labels] for labels in y]


def kinds() -> dict[str, Kind]:
    """Every kind of model that has a file."""
    X, y = sentences()
    dicts = [
        [{"w": w, "length": len(w) / 10, "up": i == 0, "ends": {w[-1]: 0.5}} for i, w in enumerate(x)]
        for x in X
    ]
    lists = [[[f"w={w}", "bias", f"end={w[-1]}"] for w in x] for x in X]
    columns = [[[w, w[-1]] for w in x] for x in X]
    random = np.random.default_rng(1)
    matrices = [random.normal(size=(len(x), 3)).round(3).tolist() for x in X]
    rows = [[{"w": w, "row": random.normal(size=2).round(3).tolist()} for w in x] for x in X]
    spans = renamed(y, {"D": "B-X", "N": "I-X", "V": "O"})
    positional = renamed(y, {"D": "d-s", "N": "n-p", "V": "v-s"})
    morphology = renamed(y, {"D": "Case=Nom|Number=Sing", "N": "Case=Nom|Number=Plur", "V": "Tense=Past"})
    template = "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,1]\nB\nB00:%x[0,1]\n"
    named = "word=%x[0,0]\nsuffix=%lower_suffix[0,0,2]\ntransition end=%x[0,1]\nB\n"
    observed = kit.Bigrams.observed(y)
    partly = [[None if i == 1 else ["D", "N"] if i == 3 else v for i, v in enumerate(labels)] for labels in y]
    restricted = [
        [["D", "N"] if i == 0 else None for i in range(len(x))] if n % 2 else None for n, x in enumerate(X)
    ]
    gated = [
        "D N* V",
        kit.Pattern("N .", when="w=dog|cat"),
        kit.Pattern("!D V$", when="up[-1] & !w=runs"),
        kit.Pattern("^D N", weight="shared"),
        kit.Pattern("V D N", weight="shared"),
        "(D|N){2,3} V",
    ]
    functional = [
        kit.Pattern("D . V", when=own.first_half),
        kit.Pattern("N V", when=own.how_early, weight="early"),
        own.doubled_words,
        kit.Ngrams(3, min_count=2),
        kit.Affixes(2, of=["DNV", "NVD"], suffixes=False),
    ]
    every = ["long_noun", "word_and_label", "verb_after_noun", "letters"]
    asked = kit.FeatureFunctions(
        [
            own.long_noun,
            own.word_and_label,
            kit.FeatureFunction(own.verb_after_noun, outputs=["after", "at the end"], end=True),
            kit.FeatureFunction(own.letters, outputs=3, on="labels", vectorised=True, name="lengths"),
        ]
    )
    return {
        "dicts": Kind({}, dicts, y),
        "lists_all_pairs": Kind(
            {"all_possible_states": True, "l1": 0.1, "l2": {"w": 0.1, "default": 0.5}}, lists, y
        ),
        "seen_arcs": Kind(
            {
                "structure": kit.Chain(start=False, end=False),
                "all_possible_transitions": False,
                "min_count": 2,
            },
            lists,
            y,
        ),
        "single_precision": Kind({"l2": 0.1}, lists, y, single_precision=True),
        "numbers_as_labels": Kind({"l2": 0.1}, lists, renamed(y, {"D": 0, "N": 1, "V": 2})),
        "partial_labels": Kind({"l2": 0.1}, lists, partly),
        "allowed": Kind({"l2": 0.1}, lists, y, allowed=restricted),
        "template": Kind({"features": template}, columns, y, "columns"),
        "named_template": Kind({"features": named, "l2": 0.1}, columns, y, "columns"),
        "preset_pos": Kind({"features": "pos", "min_count": 6}, X, y),
        "matrices": Kind({"all_possible_states": True}, matrices, y, "matrices"),
        "rows_in_dicts": Kind({}, rows, y, "rows"),
        "bigrams_observed": Kind(
            {"structure": kit.Chain(bigrams="observed", unseen="extend"), "l2": 0.1}, lists, y
        ),
        "bigrams_listed": Kind(
            {"structure": kit.Chain(bigrams=observed), "features": template}, columns, y, "columns"
        ),
        "bigrams_soft": Kind(
            {
                "structure": kit.Chain(
                    bigrams=kit.Bigrams([("D", "N"), ("N", "V"), ("V", "D")]), unseen="soft"
                ),
                "l2": 0.1,
            },
            lists,
            y,
        ),
        "bigrams_bio": Kind(
            {"structure": kit.Chain(bigrams="bio", unseen="skip"), "optimizer": kit.TRON()}, lists, spans
        ),
        "facets_characters": Kind({"facets": "characters"}, lists, positional),
        "facets_features": Kind({"facets": "features", "all_possible_states": True}, lists, morphology),
        "facets_listed": Kind(
            {"facets": own.gender, "features": "U00:%x[0,0]\nU01:%x[-1,1]\nB\n"},
            columns,
            positional,
            "columns",
        ),
        "tag_dictionary": Kind({"features": "U0:%x[0,0]\nB\n", "tag_dictionary": True}, X, y),
        "tag_dictionary_given": Kind(
            {
                "tag_dictionary": kit.TagDictionary.from_lexicon(
                    {"dog": ["N", "V"], "cat": ["N"], "runs": ["V", "N"], "the": ["D"], "a": ["D"]},
                    "w",
                    ending_length=2,
                    ending_count=1,
                )
            },
            [[{"w": w} for w in x] for x in X],
            y,
        ),
        "patterns": Kind({"structure": kit.Patterns(gated), "l2": 0.5}, dicts, y),
        "patterns_bigrams": Kind(
            {
                "structure": kit.Patterns(
                    [*gated[:1], kit.Ngrams(3), kit.Affixes(2)], bigrams="observed", unseen="extend"
                ),
                "l1": {"patterns": 0.1, "default": 0.0},
                "l2": 0.5,
            },
            dicts,
            y,
        ),
        "patterns_columns": Kind(
            {
                "structure": kit.Patterns(
                    [
                        kit.Pattern("N V", when="word=dog & !1[1]=s"),
                        kit.Pattern("D .", when="%lower[0,0]=the"),
                    ],
                    end=False,
                ),
                "features": "U00:%x[0,0]\nU01:%x[-1,1]\nB\n",
            },
            columns,
            y,
            "columns",
        ),
        "patterns_functions": Kind(
            {"structure": kit.Patterns(functional), "features": "U0:%x[0,0]\nB\n"},
            X,
            y,
            functions=["first_half", "how_early", "doubled_words"],
        ),
        "patterns_grown": Kind(
            {
                "structure": kit.Patterns(
                    ["D N V"], grow=kit.Growth(order=3, units=2, per_round=3, min_count=1, min_gain=0.01)
                ),
                "l2": 0.1,
            },
            lists,
            y,
        ),
        "functions": Kind({"features": asked, "l2": 0.1}, X, y, functions=every),
        "functions_bigrams": Kind(
            {
                "features": kit.FeatureFunctions([own.word_and_label], arcs=False),
                "structure": kit.Chain(bigrams="observed", unseen="extend"),
                "optimizer": kit.LBFGS(max_iterations=20),
            },
            X,
            y,
            functions=every[1:2],
        ),
        **{
            f"trained_by_{name.lower()}": Kind({"optimizer": optimizer, "l2": 0.1}, lists, y)
            for name, optimizer in optimizers().items()
        },
        "trained_by_name": Kind({"optimizer": "auto", "l2": 0.1}, lists, y),
    }


def optimizers() -> dict[str, Any]:
    """One of each kind, for `WHOLE` iterations."""
    n = {"max_iterations": WHOLE}
    return {
        "LBFGS": kit.LBFGS(**n, memory=3, tolerance=0.0, change=0.0),
        "TRON": kit.TRON(**n, tolerance=1e-300),
        "Newton": kit.Newton(**n, tolerance=1e-300, change=0.0),
        "SGD": kit.SGD(**n, rate=0.1, batch=2, average=True, random_state=3),
        "AdaGrad": kit.AdaGrad(**n, rate=0.2, random_state=3),
        "SAG": kit.SAG(**n, tolerance=0.0, random_state=3),
        "AveragedPerceptron": kit.AveragedPerceptron(**n),
        "PassiveAggressive": kit.PassiveAggressive(**n, variant=2, average=False),
        "AROW": kit.AROW(**n, gamma=2.0),
    }


def other_tools(folder: Path) -> dict[str, tuple[Any, list[Any], list[list[str]]]]:
    """Models of CRF++ and Wapiti, made by hand from the layouts of their files."""
    X, y = sentences(6, seed=2)
    columns = [[[w, w[-1], "unused"] for w in x] for x in X]
    random = np.random.default_rng(5)
    labels, tokens = ["D", "N", "V"], sorted({w for x in X for w in x})
    names = [f"U00:{w}" for w in tokens] + ["B", "B01:e", "B01:s"]
    ids = np.cumsum([0, *(9 if name[0] == "B" else 3 for name in names)]).tolist()
    (folder / "crfpp").write_text(
        f"version: 100\ncost-factor: 0.5\nmaxid: {ids[-1]}\nxsize: 2\n\nD\nN\nV\n\nU00:%x[0,0]\nB\nB01:%x[0,1]\n\n"
        + "".join(f"{i} {name}\n" for i, name in sorted(zip(ids, names, strict=False)))
        + "\n"
        + "".join(f"{v:.16f}\n" for v in random.normal(size=ids[-1]).round(4))
    )
    found = {"crfpp": (kit.compat.read_crfpp(folder / "crfpp"), columns, y)}
    patterns = ["u:w=%x[0,0]", 'u:end=%m[0,0,".$"]', "*:tag=%x[0,1]", "b"]
    names = [f"u:w={w}" for w in tokens] + ["u:end=e", "u:end=s", "*:tag=g", "*:tag=s", "b"]
    sizes = [12 if name[0] == "*" else 9 if name[0] == "b" else 3 for name in names]
    for kind, title in enumerate(("maxent", "memm", "crf")):
        texts = ["".join(f"{len(t)}:{t},\n" for t in group) for group in (patterns, labels, names)]
        n = sum(sizes)
        values = random.normal(size=n).round(4).tolist()
        (folder / title).write_text(
            f"#mdl#{kind}#{n}\n#rdr#{len(patterns)}/1/0\n{texts[0]}#qrk#{len(labels)}\n{texts[1]}#qrk#{len(names)}\n"
            f"{texts[2]}" + "".join(f"{i}={v.hex()}\n" for i, v in enumerate(values))
        )
        found[f"wapiti_{title}"] = (kit.compat.read_wapiti(folder / title), columns, y)
    return found


TREES = """\
the DET 2 det|dog NOUN 3 nsubj|sees VERB 0 root|a DET 5 det|cat NOUN 3 obj
a DET 2 det|cat NOUN 3 nsubj|runs VERB 0 root
dogs NOUN 2 nsubj|see VERB 0 root|the DET 4 det|house NOUN 2 obj|now ADV 2 advmod
now ADV 4 advmod|the DET 3 det|dog NOUN 4 nsubj|eats VERB 0 root
the DET 2 det|house NOUN 3 nsubj|eats VERB 0 root|dogs NOUN 3 obj
a DET 2 det|dog NOUN 3 nsubj|eats VERB 0 root|a DET 5 det|house NOUN 3 obj|now ADV 3 advmod
"""


def treebank() -> str:
    """The trees above as CoNLL-U."""
    lines = []
    for tree in TREES.splitlines():
        for i, word in enumerate(tree.split("|"), 1):
            form, tag, head, label = word.split()
            lines.append(f"{i}\t{form}\t{form}\t{tag}\t{tag[0]}\tNumber=Sing\t{head}\t{label}\t_\t_")
        lines.append("")
    return "\n".join(lines) + "\n"


def record(name: str, content: dict[str, Any]) -> None:
    """Write what belongs to a file; input that several have stands in `inputs.json` once."""
    for key in ("X", "y") if "X" in content else ():
        if content[key] not in INPUTS:
            INPUTS.append(content[key])
        content[key] = INPUTS.index(content[key])
    text = json.dumps(
        {"written by": VERSION, **content}, ensure_ascii=False, separators=(",", ":"), default=_json
    )
    (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def _json(value: Any) -> Any:
    """Arrays as lists of numbers with 11 digits behind the point."""
    return np.asarray(value).round(11).tolist()


def answers(crf: Any, X: Any, y: Any, allowed: Any = None) -> dict[str, Any]:
    labels = [[set(v) if isinstance(v, list) else v for v in labels] for labels in y]
    return {
        "labels": crf.predict(X, allowed=allowed),
        "marginals": crf.predict_marginals(X, allowed=allowed)[-LAST:],
        "log_probability": crf.log_probability(X, labels, allowed=allowed),
        "n_best": crf.predict_nbest(X, 3, allowed=allowed)[-LAST:],
    }


def write_models() -> None:
    for name, kind in kinds().items():
        X = formed(kind.X, kind.form)
        y = [[set(v) if isinstance(v, list) else v for v in labels] for labels in kind.y]
        crf = kit.CRF(**kind.params, n_threads=1)
        crf.fit(X[:SPLIT], y[:SPLIT], allowed=None if kind.allowed is None else kind.allowed[:SPLIT])
        path = FOLDER / f"{name}.crf"
        crf.save(path, single_precision=kind.single_precision)
        loaded = kit.load(path, [getattr(own, f) for f in kind.functions] or None)
        record(
            name,
            {
                "X": kind.X,
                "y": kind.y,
                "form": kind.form,
                "trained on": SPLIT,
                "functions": list(kind.functions),
                "allowed": kind.allowed,
                "answers": answers(loaded, X, kind.y, kind.allowed),
            },
        )
    with tempfile.TemporaryDirectory() as folder:
        for name, (other, rows, labels) in other_tools(Path(folder)).items():
            other.save(FOLDER / f"{name}.crf")
            record(
                name,
                {
                    "X": rows,
                    "y": labels,
                    "form": "columns",
                    "answers": answers(other, formed(rows, "columns"), labels),
                },
            )


def write_parsers() -> None:
    text = treebank()
    sentences = list(kit.data.read_conllu(io.StringIO(text)))
    settings: dict[str, dict[str, Any]] = {
        "parser": {"min_count": 3},
        "parser_roots": {
            "single_root": False,
            "decode": "mbr",
            "min_count": 3,
            "optimizer": kit.LBFGS(),
            "l1": 0.3,
        },
    }
    for name, params in settings.items():
        parser: Any = kit.Parser(**params, n_threads=1).fit(sentences[:4])
        parser.save(FOLDER / f"{name}.crf")
        record(
            name,
            {
                "conllu": text,
                "trained on": 4,
                "trees": [[(w.head, w.deprel) for w in s.words] for s in parser.predict(sentences)],
                "arcs": list(parser.arc_probabilities(sentences)),
                "log_likelihood": parser.log_likelihood(sentences),
                "n_best": [[p for p, _ in best] for best in parser.predict_nbest(sentences, 3)],
            },
        )


def write_checkpoints() -> None:
    """Training runs that ended after `HALF` of their iterations."""
    X, y = sentences()
    lists = [[[f"w={w}", "bias"] for w in x] for x in X]
    settings: dict[str, dict[str, Any]] = {name: {"optimizer": name, "l2": 0.1} for name in optimizers()} | {
        "OWLQN": {"optimizer": "LBFGS", "l1": 0.1, "l2": 0.1}
    }
    for name, params in settings.items():
        for dev in (False, True) if name in ("LBFGS", "AdaGrad") else (False,):
            optimizer = optimizers()[params["optimizer"]]
            crf = kit.CRF(**{**params, "optimizer": optimizer}, n_threads=1)
            held_out = (lists[SPLIT:], y[SPLIT:]) if dev else None
            title = f"checkpoint_{name.lower()}" + "_dev" * dev
            path = FOLDER / f"{title}.crf"
            path.unlink(missing_ok=True)
            crf.fit(
                *(lists[:SPLIT], y[:SPLIT]),
                dev=held_out,
                checkpoint=kit.Checkpoint(path, every=HALF),
                callback=lambda progress: progress.iteration == HALF,
            )
            whole = kit.CRF(**{**params, "optimizer": optimizer}, n_threads=1)
            whole.fit(lists[:SPLIT], y[:SPLIT], dev=held_out)
            record(
                title,
                {
                    "X": lists,
                    "y": y,
                    "form": "plain",
                    "trained on": SPLIT,
                    "dev": dev,
                    "interrupted": HALF,
                    "parameters": {
                        **params,
                        "optimizer": [params["optimizer"], dataclasses.asdict(optimizer)],
                    },
                    "iterations": [record.iteration for record in whole.history_],
                    "objectives": [record.objective for record in whole.history_],
                    "answers": answers(whole, lists, y),
                },
            )


def write_layers() -> None:
    """Parameters of `crfkit.nn`, by the names that its modules give them."""
    import torch
    from safetensors.torch import save_file

    from crfkit.nn import ChainCRF

    torch.manual_seed(0)
    layer = ChainCRF(labels=["B", "I", "O"], bigrams="bio", dtype=torch.float64)
    save_file(layer.state_dict(), FOLDER / "layer.safetensors")
    emissions, tags = torch.randn(2, 4, 3, dtype=torch.float64), torch.tensor([[0, 1, 2, 0], [2, 0, 1, 1]])
    record(
        "layer",
        {
            "emissions": emissions.tolist(),
            "tags": tags.tolist(),
            "log_likelihood": layer(emissions, tags, reduction="none").tolist(),
            "labels": layer.decode(emissions).tolist(),
        },
    )


if __name__ == "__main__":
    VERSION = {"crfkit": kit.__version__, "commit": sys.argv[1]}
    warnings.simplefilter("ignore")
    write_models()
    write_parsers()
    write_checkpoints()
    write_layers()
    (FOLDER / "inputs.json").write_text(json.dumps(INPUTS, separators=(",", ":")) + "\n", encoding="utf-8")
