"""Stream a JSON object of any size member by member: its text passes in blocks and is never held whole.

Members that follow each other as the two before them did, as a program wrote them all, are parsed many at once by
orjson; what it does not take (``NaN``, damage), and all others, by the standard library's scanner, a value at a time.
A file that was cut off gives all members before the damage.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from itertools import repeat
from json.decoder import JSONDecodeError
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from msprobe_ms.support.errors import DamagedFileError, DumpFormatError
from msprobe_ms.support.files import open_regular
from msprobe_ms.support.translation import tr, tr_join

#: Bytes read at a time, so few that what is made of them, some ten times as much, stays in a core's own cache: from
#: 64 KiB on parsing takes up to three times as long. More where one value is larger.
_BLOCK = 1 << 14
#: The same where most of it is not parsed.
_LARGE_BLOCK = 1 << 18
#: Times what there is of a value that is read next where it is not whole, so that scanning it anew stays linear.
_GROWTH = 3
#: Characters from the end of what was read within which the scanner may have missed the rest of a number or literal.
_CUT = 16
#: Characters of a value's end by which it is told from the ends of what it holds.
_TAIL = 2
_SURROGATE = re.compile("[\ud800-\udfff]")
#: What ends a number.
_ENDS = frozenset(" \t\n\r,}")
_SPACE = re.compile(r"[ \t\n\r]*")
_NAMES = {
    '"': tr("a double quote"),
    ":": tr("a colon"),
    ",": tr("a comma"),
    "{": tr("an opening brace"),
    "}": tr("a closing brace"),
}
#: What the standard library's scanner says, as messages.
_FAULTS = {
    "Expecting value": tr("expected a value"),
    "Expecting property name enclosed in double quotes": tr("expected a key in double quotes"),
    "Expecting ':' delimiter": tr("expected a colon"),
    "Expecting ',' delimiter": tr("expected a comma"),
    "Unterminated string starting at": tr("the text that begins here has no end"),
    "Invalid control character at": tr("a control character inside a text"),
}


#: Holder, key and value: the holder is "" for a member of the file's object, else the name of the member whose object
#: it stands in.
Member = tuple[str, str, Any]


#: Takes members from a place in a text on that need no parsing; returns where that ends, and where a whole member ends
#: that follows and must be parsed, or 0.
Taker = Callable[[str, int], tuple[int, int]]


def members(path: Path, opened: str | None = None, taker: Taker | None = None) -> Iterator[Member]:
    """Yield the members of the object in ``path``; for the one named ``opened``, when it is an object, its members.

    Of these ``taker`` may take some, which are not yielded then.

    An opened object comes first as a member of its own, with the value ``{}``. ``NaN`` and ``Infinity`` are numbers of
    the format; half characters become ``?``; integers beyond 64 bits may come as the nearest double.

    :raises DumpFormatError: the file cannot be read
    :raises DamagedFileError: what comes next is not the JSON of an object
    :raises RecursionError: a value is nested deeper than Python recurses
    """
    try:
        with open_regular(path) as file:
            text = _Text(file)
            yield from _object(text, opened, taker)
            text.end()
    except OSError as error:
        raise DumpFormatError(
            tr("{path}: cannot be read: {strerror}", path=path, strerror=error.strerror or error)
        ) from error
    except _Damage as damage:
        raise DamagedFileError(tr("{path}: {damage}", path=path, damage=damage)) from damage


class _Damage(Exception):
    """What is wrong with the text, and where."""


def _decoder() -> Callable[..., str]:
    return codecs.getincrementaldecoder("utf-8-sig")("surrogatepass").decode


class _Text:
    """The text of a file from ``place`` on, as far as it has been read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decode = _decoder()
        self._scan = json.JSONDecoder().raw_decode
        self._ended = False
        #: How many characters were dropped.
        self._dropped = 0
        #: Where the last value ends, what lies between it and the key behind it, and whether that was searched for.
        self._end, self._between, self._searched = 0, "", False
        #: Bytes to read at a time.
        self._block = _BLOCK
        self.text = ""
        self.place = 0

    def next(self) -> str:
        """The next character that is no space, which is not taken; "" at the end."""
        while True:
            self.place = _SPACE.match(self.text, self.place).end()  # type: ignore[union-attr]
            if self.place < len(self.text):
                return self.text[self.place]
            if not self.more():
                return ""

    def take(self, accepted: str) -> str:
        """Take the next character, one of ``accepted``."""
        found = self.next()
        if not found or found not in accepted:
            names = tr_join(tr(" or "), [_NAMES[each] for each in accepted])
            raise self._damaged(tr("expected {names}", names=names), self.place)
        self.place += 1
        return found

    def end(self) -> None:
        """Make sure that nothing follows."""
        if self.next():
            raise self._damaged(tr("expected the end of the file"), self.place)

    def value(self, *, alone: bool = False) -> Any:
        """Take the next value. A number at the end of the file may be half of one, where it is not ``alone``."""
        self.next()
        while True:
            try:
                value, end = self._scan(self.text, self.place)
            except JSONDecodeError as error:
                if (error.msg.startswith("Unterminated") or self._may_go_on(error.pos)) and self.more():
                    continue
                raise self._damaged(_FAULTS.get(error.msg, error.msg), error.pos) from None
            except ValueError:  # an integer of more digits than Python reads
                raise self._damaged(tr("a number of too many digits"), self.place) from None
            if isinstance(value, (int, float)) and self._may_go_on(end) and self.more():
                continue  # "1." and "1e-" are 1 so far
            if isinstance(value, (int, float)) and self.text[end : end + 1] not in _ENDS and not alone:
                names = tr_join(tr(" or "), [_NAMES[","], _NAMES["}"]])
                raise self._damaged(tr("expected {names}", names=names), end)
            if self._may_hold_half_characters(end):
                value = _without_lone_surrogates(value)
            self.place = self._end = end
            return value

    def many(self) -> dict[str, Any]:
        """Take the whole members from the next key on, as far as can be told; the comma behind them is not taken.

        A text that is an object when braces are put around it holds whole members: one that ends inside a value, or
        inside a string, would lack their ends.
        """
        if self._end >= _TAIL:
            self._between = self.text[self._end - _TAIL : self.place + 1]
        last = -1 if self._searched or not self._between else self.text.rfind(self._between, self.place)
        self._searched = True
        if last < 0:
            return {}
        end = last + _TAIL
        try:
            found: dict[str, Any] = orjson.loads(f"{{{self.text[self.place : end]}}}")
        except ValueError:
            return {}
        self.place = end
        return found

    def known(self, taker: Taker) -> tuple[bool, dict[str, Any]]:
        """Have members taken that need no parsing, and one parsed that follows; what ends them is not taken.

        Return whether there were any, and the one that was parsed.
        """
        if len(self.text) - self.place < _BLOCK:
            self.more(self._block)
        start = self.place
        self.place, end = taker(self.text, start)
        self._block = _LARGE_BLOCK if self.place > start else _BLOCK
        if self.place > start or not end:
            return self.place > start, {}
        try:
            found: dict[str, Any] = orjson.loads(f"{{{self.text[start:end]}}}")
        except ValueError:
            return False, {}
        self.place = end
        return True, found

    def more(self, at_least: int = _BLOCK) -> bool:
        """Read on; False at the end of the file. What was taken is dropped."""
        if self._ended:
            return False
        rest = self.text[self.place :]
        raw = self._file.read(max(at_least, _GROWTH * len(rest)))
        self._ended = not raw
        self._end, self._searched = 0, False
        self._dropped += self.place
        try:
            self.text, self.place = rest + self._decode(raw, final=self._ended), 0
        except UnicodeDecodeError as error:
            self.text, self.place = rest, 0
            raise self._damaged(tr("this is no UTF-8 text"), len(rest)) from error
        return True

    def _may_hold_half_characters(self, end: int) -> bool:
        if self.text.find("\\u", self.place, end) >= 0:
            return True
        return not self.text.isascii() and _SURROGATE.search(self.text, self.place, end) is not None

    def _may_go_on(self, place: int) -> bool:
        return place >= len(self.text) - _CUT

    def _damaged(self, what: str, place: int) -> _Damage:
        line, column = self._position(place)
        return _Damage(
            tr("not valid JSON: line {line}, column {column}: {what}", line=line + 1, column=column + 1, what=what)
        )

    def _position(self, place: int) -> tuple[int, int]:
        """The line and column of a place, from 0: read anew, as hardly any file is damaged."""
        line, column, left, decode = 0, 0, self._dropped + place, _decoder()
        self._file.seek(0)
        while left and (raw := self._file.read(_BLOCK)):
            try:
                text = decode(raw)[:left]
            except UnicodeDecodeError as error:
                begins = "utf-8-sig" if left == self._dropped + place else "utf-8"
                text = error.object[: error.start].decode(begins, "surrogatepass")[:left]
                left = len(text)
            newlines = text.count("\n")
            line, column = line + newlines, len(text) - text.rfind("\n") - 1 + (0 if newlines else column)
            left -= len(text)
        return line, column


def _object(text: _Text, opened: str | None, taker: Taker | None, holder: str = "") -> Iterator[Member]:
    if not text.next():
        raise _Damage(tr("empty: the dumping process ended before it was written"))
    if text.next() != "{":
        raise _Damage(tr("holds {kind_of}; accepted is an object", kind_of=kind_of(text.value(alone=True))))
    text.take("{")
    if text.next() == "}":
        text.take("}")
        return
    while True:
        while holder and taker is not None and text.next() == '"':
            moved, found = text.known(taker)
            yield from zip(repeat(holder), found, found.values(), strict=False)
            if not moved:
                break
            if text.take(",}") == "}":
                return
        while text.next() == '"' and (holder or opened is None) and (found := text.many()):
            yield from zip(repeat(holder), found, found.values(), strict=False)
            text.take(",")
            text.more()  # what is left of a block after that is no whole member
        if text.next() != '"':
            text.take('"')
        key = text.value()
        text.take(":")
        if not holder and key == opened and text.next() == "{":
            yield "", key, {}
            yield from _object(text, opened, taker, holder=key)
        else:
            yield holder, key, text.value()
        if text.take(",}") == "}":
            return


def kind_of(value: object) -> str:
    """Say what a JSON value is, for error texts."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "missing or null"}
    return names.get(type(value), "a number")


def _without_lone_surrogates(value: Any) -> Any:
    """``value`` with ``?`` for half characters (an escape ``\\ud800`` alone), which nothing can print or write."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.loads(text.encode("utf-8", "replace"))
    return value
