"""Questions that a request asks, and their options."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from crfkit.serve.errors import bad_value
from crfkit.serve.given import FORMS
from crfkit.serve.limits import Limits

LEAST = 0.001  # threshold: below it there would be very many spans
QUESTIONS = ("tag", "spans", "nbest", "explain", "parse")
DECODINGS = ("viterbi", "spans", "f1")
SCHEMES = ("bio", "iob1", "iobes", "bilou", "bmes", "plain")

_NOT_OPTIONS = {"model", *FORMS}


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of every sentence of a request; requests with equal questions are answered together."""

    name: str
    probabilities: bool = False  # tag: of each label; parse: of tags and arcs
    threshold: float | None = None  # spans: the least probability; None: the default of the library
    decode: str | None = None  # spans: one of `DECODINGS`; parse: "best" or "mbr"
    scheme: str | None = None  # spans: how labels are read
    n: int = 3  # nbest
    sentence: int = 0  # explain: which sentence of the first document
    position: int = 0  # explain: which token of it
    label: str | int | None = None  # explain: why this one; None: the likeliest
    against: str | int | None = None  # explain: and not this one; None: the runner-up
    svg: bool = False  # parse: a picture of each tree
    conllu: bool = False  # parse: CoNLL-U

    @property
    def whole(self) -> bool:
        """Whether the answer depends on all sentences of the request, and on no others."""
        return self.name == "explain" or self.decode == "f1"

    @classmethod
    def of(cls, name: str, request: dict[str, Any], limits: Limits) -> "Question":
        """The question of a request; RequestError for options that it does not have, or that are of another type."""
        options = _OPTIONS[name]
        for key in request:
            if key not in options and key not in _NOT_OPTIONS:
                raise bad_value(
                    f"/{name} has no option {key[:60]!r}, expected an input ({', '.join(FORMS)}) "
                    f"and some of {', '.join((*sorted(options), 'model'))}"
                )
        return cls(name, **dict(_read(name, request, limits)))


_OPTIONS: dict[str, tuple[str, ...]] = {
    "tag": ("probabilities",),
    "spans": ("threshold", "decode", "scheme"),
    "nbest": ("n",),
    "explain": ("sentence", "position", "label", "against"),
    "parse": ("probabilities", "decode", "svg", "conllu"),
}


def _read(name: str, request: dict[str, Any], limits: Limits) -> Iterator[tuple[str, Any]]:
    for option in _OPTIONS[name]:
        value = request.get(option)
        if value is None:
            continue
        if option in ("probabilities", "svg", "conllu"):
            if not isinstance(value, bool):
                raise bad_value(f"{option} is no boolean")
        elif option == "threshold":
            if isinstance(value, bool) or not isinstance(value, int | float) or not LEAST <= value <= 1:
                raise bad_value(f"threshold is no number from {LEAST} to 1")
            value = float(value)
        elif option in ("n", "sentence", "position"):
            value = _count(option, value, limits)
        elif option in ("decode", "scheme"):
            allowed = SCHEMES if option == "scheme" else DECODINGS if name == "spans" else ("best", "mbr")
            if value not in allowed:
                raise bad_value(f"{option} is unknown, expected one of {', '.join(allowed)}")
        elif not isinstance(value, str | int):
            raise bad_value(f"{option} is no label")
        yield option, value


def _count(option: str, value: Any, limits: Limits) -> int:
    least, most = (1, limits.max_nbest) if option == "n" else (0, limits.max_tokens)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise bad_value(f"{option} is no whole number from {least} to {most:,}")
    return value
