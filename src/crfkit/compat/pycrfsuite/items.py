"""What python-crfsuite takes for a sequence of items, and how it names their attributes.

["a", "b"]                   attributes a and b
{"w": "Rome", "len": 4.0}    attributes w:Rome, and len with the value 4
{"up": True}                 attribute up with the value 1; False: with 0
{"ctx": {…}}, {"ctx": […]}   those of the inner dict, list or set, their names after "ctx:"
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from crfkit import _core
from crfkit.errors import InputError

Attributes = list[tuple[str, float]]  # of one item: names and values
_INNER = (dict, list, set)


class ItemSequence:
    """Items whose attributes are worked out once, for taggers and trainers that see them more than once.

    >>> ItemSequence([{"foo": 1, "bar": 0}, {"foo": 1.5, "baz": 2}])
    <ItemSequence of size 2>
    """

    def __init__(self, pyseq: Iterable[Any] | ItemSequence) -> None:
        self._names: _core.NamedPositions | None = None  # what the native core has read
        self._attributes: list[Attributes] | None = None  # in place of it: what only this module knows
        if isinstance(pyseq, ItemSequence):
            self._names, self._attributes = pyseq._names, pyseq._attributes
            return
        items = [item if type(item) in (dict, list) else _materialise(item) for item in pyseq]
        try:
            self._names = _core.NamedPositions(items)
            self._names.compact()
        except _core.InvalidInput:
            self._attributes = [attributes_of(item) for item in items]

    def items(self) -> list[dict[str, float]]:
        """The attributes of each item, {name: value}.

        >>> ItemSequence([["foo"], {"bar": {"baz": 1}}]).items()
        [{'foo': 1.0}, {'bar:baz': 1.0}]
        """
        return [dict(attributes) for attributes in self._pairs()]

    def names(self) -> _core.NamedPositions:
        """The names and values of the attributes, in a form that the native core looks up."""
        if self._names is None:
            from crfkit.data import item_of

            try:
                self._names = _core.NamedPositions([item_of(attributes) for attributes in self._pairs()])
            except _core.InvalidInput as error:
                raise InputError(str(error)) from None
        return self._names

    def _pairs(self) -> list[Attributes]:
        if self._attributes is not None:
            return self._attributes
        assert self._names is not None
        return self._names.attributes()

    def __getstate__(self) -> dict[str, Any]:
        return {"_attributes": self._pairs(), "_names": None}

    def __len__(self) -> int:
        return len(self._pairs() if self._names is None else self._names)

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"


def attributes_of(item: Any) -> Attributes:
    """Names and values of an item's attributes; TypeError for what cannot be one."""
    if not isinstance(item, dict):
        return [(_text(name), 1.0) for name in item]
    found: Attributes = []
    for key, value in item.items():
        name = _text(key)
        if isinstance(value, _INNER):
            found += ((f"{name}:{inner}", number) for inner, number in attributes_of(value))
        elif isinstance(value, str | bytes):
            found.append((f"{name}:{_text(value)}", 1.0))
        else:
            found.append((name, float(value)))
    return found


def _materialise(item: Any) -> Any:
    """An item that can be read more than once."""
    return list(item) if isinstance(item, Iterator) else item


def _text(name: Any) -> str:
    if isinstance(name, str):
        return name
    if isinstance(name, bytes):
        return name.decode()
    raise TypeError(f"expected a string, {type(name).__name__} found")


def read_items(xseq: Any) -> _core.NamedPositions:
    """The attributes of a sequence, by name.

    Lists of strings and plain dicts are read by the native core. Whatever else python-crfsuite takes goes through
    `ItemSequence`.
    """
    if isinstance(xseq, ItemSequence):
        return xseq.names()
    if type(xseq) is not list:
        xseq = list(xseq)
    try:
        return _core.NamedPositions(xseq)
    except _core.InvalidInput:
        return _read_again(xseq).names()


def _read_again(xseq: list[Any]) -> ItemSequence:
    """A sequence that the native core has refused; TypeError for items that it may have used up."""
    for item in xseq:
        if isinstance(item, Iterator):
            raise TypeError(
                f"an item is a {type(item).__name__}, which is read only once; expected a list or a dict"
            )
    return ItemSequence(xseq)
