"""What a notebook shows of a model: whether it is trained, its parameters, and what it has learned."""

import inspect
from collections.abc import Iterable
from typing import Any

from crfkit.markup import Html, details, escape, fragment, join, table, tag

_LONGEST = 300  # characters of a value
_LISTED = 40  # labels


class ParameterView:
    """A model whose parameters are the arguments of `__init__`: as text, and in notebooks as a card that unfolds."""

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        arguments = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return {argument.name: argument.default for argument in arguments}

    def _facts(self) -> dict[str, object] | None:
        """What training fixed, by name; None: it is not trained."""
        raise NotImplementedError

    def _views(self) -> Iterable[tuple[str, Any]]:
        """What else there is to see, each under its name: anything with a view of its own."""
        return ()

    def _changed(self) -> dict[str, Any]:
        """The parameters that are not at their defaults."""
        defaults = self._defaults()
        given = {name: getattr(self, name) for name in defaults}
        return {
            name: value
            for name, value in given.items()
            if value is not defaults[name] and repr(value) != repr(defaults[name])
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._changed().items())})"

    def _repr_html_(self) -> str:
        return fragment(self._card(is_open=True))

    def _card(self, *, is_open: bool = False) -> Html:
        """The card of this model, without its style."""
        facts = self._facts()
        state = "not trained" if facts is None else "trained"
        title = join([tag("b", type(self).__name__), tag("span", f" {state}", class_="pale")])
        parts = [details("Parameters", self._parameter_table(), is_open=is_open and facts is None)]
        if facts is not None:
            rows = [
                (tag("span", name, class_="pale"), value)
                for name, value in facts.items()
                if value is not None
            ]
            parts.insert(0, table(rows))
            parts += [details(name, _view(thing)) for name, thing in self._views()]
        return details(title, *parts, is_open=is_open)

    def _parameter_table(self) -> Html:
        """All parameters; those that are not at their defaults stand out."""
        changed = self._changed()
        return table(
            (
                tag("b", name) if name in changed else tag("span", name, class_="pale"),
                tag("code", value_text(getattr(self, name))),
            )
            for name in self._defaults()
        )


def value_text(value: object) -> str:
    """A parameter for people: functions by their names, long values cut."""
    named = getattr(value, "__qualname__", None) if callable(value) else None
    text = named or (f"{value[:_LONGEST]!r}" if isinstance(value, str) else repr(value))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def label_list(labels: Iterable[object]) -> Html:
    """How many labels there are, and the first of them."""
    names = [str(label) for label in labels]
    more = f" … {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return escape(f"{len(names):,}: {', '.join(names[:_LISTED])}{more}")


def _view(thing: Any) -> Html:
    """Something inside a card: the card of a model, its HTML, or its text."""
    if isinstance(thing, ParameterView):
        return thing._card(is_open=True)
    own = getattr(thing, "_repr_html_", None)
    return Html(own()) if own is not None else tag("pre", str(thing))
