"""`crfkit demo`: a part-of-speech tagger from the bundled sample of the English Web Treebank, in under a minute."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import as_file, files
from time import perf_counter
from typing import TYPE_CHECKING

import click

from crfkit.cli.columns import Example, read_labelled

if TYPE_CHECKING:
    from crfkit.models import CRF

SENTENCE = "They can fish here , but I would rather book a table near the lake ."


def read_sample(part: str) -> list[Example]:
    """The `train` or `test` part of the sample: words with universal parts of speech."""
    with as_file(files("crfkit.cli") / "demo_data" / f"{part}.txt.xz") as path:
        return list(read_labelled(path, label_column=-1))


def demo(say: Callable[[str], None], *, max_iterations: int = 60) -> float:
    """Train, test, and tag one sentence, telling about it; the accuracy on the test part."""
    from crfkit.models import CRF, Progress
    from crfkit.optimizers import LBFGS

    train, test = read_sample("train"), read_sample("test")
    say("A sample of UD English EWT (CC BY-SA 4.0): https://github.com/UniversalDependencies/UD_English-EWT")
    for name, part in (("training", train), ("test", test)):
        say(f"  {name}: {len(part):,} sentences, {sum(len(example.inputs) for example in part):,} words")

    def show(progress: Progress) -> None:
        if progress.iteration % 10 == 0:
            say(
                f"  iteration {progress.iteration:3d}  objective {progress.objective:10.1f}  {progress.seconds:5.1f} s"
            )

    say('\nTraining: crfkit.CRF(features="pos").fit(X, y)')
    crf = CRF(features="pos", optimizer=LBFGS(max_iterations=max_iterations))
    began = perf_counter()
    crf.fit([example.inputs for example in train], [example.labels for example in train], callback=show)
    say(f"  {crf.n_features_:,} features, {len(crf.weights_):,} weights, {perf_counter() - began:.1f} s")
    right = crf.score([example.inputs for example in test], [example.labels for example in test])
    say(f"\nAccuracy on the {len(test)} test sentences: {100 * right:.2f} %")
    say(f"\nA new sentence, with the probability of each label:\n{tagged(crf, SENTENCE.split())}")
    return right


def tagged(model: CRF, words: list[str]) -> str:
    """The words with their labels and the probabilities of these, and the runner-up where there is one."""
    [labels], [marginals] = model.predict([words]), model.predict_marginals([words])
    lines = []
    for site, word in enumerate(words):
        ranked = sorted(zip(marginals[site].tolist(), map(str, model.classes_), strict=True), reverse=True)
        first = model.classes_.index(labels[site])
        others = [f"{name} {p:.3f}" for p, name in ranked if name != labels[site] and p >= 0.05]
        lines.append(
            f"  {word:10} {labels[site]!s:6} {marginals[site, first]:.3f}   {'  '.join(others)}".rstrip()
        )
    return "\n".join(lines)


@click.command("demo", short_help="Train a part-of-speech tagger on a bundled sample and show it.")
def command() -> None:
    """Train a part-of-speech tagger on a bundled sample of the English Web Treebank and show what it does."""
    demo(click.echo)
