"""Calls whose texts in dump.json are alike but for floats and long texts: what the floats are is learned once.

The calls of a function differ in their statistics and sketches alone, which a few forms of text hold. What a form
means, a first value of it tells: one whose floats and texts say which they are is read as any other is. All further
values of that form need no parsing. Where the part in C is not built, every value is parsed.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import orjson

from msprobe_ms.dump.columns import ItemForm, ItemSlice, ItemTable
from msprobe_ms.dump.names import ATTRIBUTES, BACKWARD, FORWARD, PARAMETERS_GRAD, RECOMPUTE, SCOPE
from msprobe_ms.dump.reading.items import SECTION_KEYS, call_items, gradient_items
from msprobe_ms.support.errors import DumpFormatError

try:
    from msprobe_ms.dump.reading._members import take as _take
except ImportError:
    _take = None  # type: ignore[assignment]

#: What stands in a form for a float and for a long text, as members.c has it.
_HOLES = re.compile(b"[\x01\x02]")
_FLOAT = b"\x01"
#: Values of a form that are parsed before it is learned, which takes as long.
_PARSED = 6
#: Forms from which on there must be twice as many values: in a dump of checksums no two are alike.
_SOME_FORMS = 256
#: Characters of forms that are kept.
_MOST_CHARACTERS = 1 << 24
#: Bytes of a sketch.
_SKETCH = 64
#: What adds the items of a value, by the word that ends its name, before its number or behind it.
_READERS: Mapping[bytes, Callable[[ItemTable, str, dict[str, Any]], ItemSlice]] = {
    f".{FORWARD}".encode(): call_items,
    f".{BACKWARD}".encode(): call_items,
    f".{PARAMETERS_GRAD}".encode(): gradient_items,
}
#: Keys of a value that tell of its entry, and not of an item.
_OF_ENTRIES = frozenset((RECOMPUTE, SCOPE, ATTRIBUTES))


class AlikeCalls:
    """Takes calls of known forms from the text of a dump.json and adds their items to ``table``.

    ``add`` is given their names, and what adds their items once they have the names that it is given.
    """

    def __init__(
        self, table: ItemTable, add: Callable[[Sequence[str], Callable[[Sequence[str]], list[ItemSlice]]], None]
    ) -> None:
        self._table, self._add = table, add
        #: The numbers of known forms; None of one whose values must be parsed.
        self._codes: dict[bytes, int | None] = {}
        self._forms: list[ItemForm] = []
        #: How many values had a form of which nothing is learned so far, and how many characters all forms have.
        self._seen: dict[bytes, int] = {}
        self._characters = self._values = 0

    @staticmethod
    def is_built() -> bool:
        return _take is not None

    def take(self, text: str, place: int) -> tuple[int, int]:
        """Take the members from ``place`` on that are calls of known forms.

        Return where that ends, and where a whole member ends that follows and must be parsed; 0 where none does.
        """
        if not text.isascii() or len(self._seen) > max(_SOME_FORMS, self._values // 2):
            return place, 0
        names: list[str] = []
        codes: list[int] = []
        texts: list[str] = []
        end, numbers, form, parsed_end = _take(text, place, self._codes, names, codes, texts)
        if names:
            self._hold(names, codes, numbers, texts)
        if form is None or not self._learn(form):
            return end, parsed_end
        return (end, 0) if end > place else self.take(text, place)

    def _hold(self, names: list[str], codes: list[int], numbers: bytes, texts: list[str]) -> None:
        floats = np.array(orjson.loads(b"[%b]" % numbers[:-1]), np.float64)
        forms = [*map(self._forms.__getitem__, codes)]
        self._values += len(names)
        self._add(names, lambda known: self._table.add_alike(known, forms, floats, texts))

    def _learn(self, form: bytes) -> bool:
        """Learn a form that comes often; whether its values need not be parsed."""
        self._values += 1
        seen = self._seen.get(form, 0)
        if seen < _PARSED:
            if seen or self._characters < _MOST_CHARACTERS:
                self._seen[form] = seen + 1
                self._characters += 0 if seen else len(form)
            return False
        del self._seen[form]
        learned = _learned(self._table, form)
        self._codes[form] = None if learned is None else len(self._forms)
        if learned is not None:
            self._forms.append(learned)
        return learned is not None


def _learned(table: ItemTable, form: bytes) -> ItemForm | None:
    """What the values of a form hold; None where floats or texts are anything but statistics and sketches."""
    word, _, _ = form.partition(b"{")
    if word not in _READERS:
        return None
    add_items = _READERS[word]
    floats, sketches, text = _telling(form[len(word) :])
    trial = ItemTable()
    try:
        body = orjson.loads(text)
        if not _OF_ENTRIES.isdisjoint(body) or (add_items is call_items and not SECTION_KEYS.issuperset(body)):
            return None
        add_items(trial, "", body)
    except (ValueError, RecursionError, DumpFormatError):
        return None
    return table.form_of(trial, floats, sketches)


def _telling(value: bytes) -> tuple[list[float], list[str], bytes]:
    """A value of a form whose floats and texts differ: these, in their order, and the value.

    The floats are negative, so that none can join what stands before its place.
    """
    floats: list[float] = []
    sketches: list[str] = []

    def next_one(hole: re.Match[bytes]) -> bytes:
        if hole[0] == _FLOAT:
            floats.append(-0.5 - len(floats))
            return repr(floats[-1]).encode()
        sketches.append(b2a_base64((len(sketches) + 1).to_bytes(_SKETCH, "big"), newline=False).decode())
        return b'"%b"' % sketches[-1].encode()

    text = _HOLES.sub(next_one, value)
    return floats, sketches, text
