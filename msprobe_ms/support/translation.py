"""Messages in the language of the user: English texts that are told in Chinese where that is wanted.

A message is made with `tr` or `tr_count` and *is* its English text: files that programs read, comparisons and tests see
no other. It keeps what it was made from, and `translated`, called where something is printed, logged or drawn, says it
in the language asked for: ``MSPROBE_LANG``, else the locale. The catalogue is read then, not before; one that cannot be
read means English, and so does a message that it does not hold or that cannot be filled in.
"""

from __future__ import annotations

import contextlib
import gettext
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from numbers import Number
from string import Formatter
from typing import Any

from msprobe_ms.support.columns import padded

#: What a user may ask for → the locale of its catalogue; none for English, which is in the sources.
LANGUAGES: Mapping[str, str | None] = {"en": None, "zh": "zh_CN"}
#: Names the language, before any locale.
VARIABLE = "MSPROBE_LANG"
#: What says which language a locale has: the first that is set counts.
_LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")
_DOMAIN = "msprobe_ms"
#: Between a context and its message, in catalogues.
_BETWEEN = "\x04"


#: A Chinese letter; a letter or digit of another script, which a space keeps apart from it.
_CHINESE, _WORD = re.compile("[\u4e00-\u9fff]"), re.compile("[A-Za-z0-9]")
#: Signs that have their space in themselves.
_SIGN = re.compile("[，。：；？！、（）“”]")
#: The format of a text in a column.
_COLUMN = re.compile(r"(?P<side>[<>]?)(?P<width>\d+)")
#: A field so wide as no message has one.
_WIDTH = re.compile(r"\{\w*:[^{}]*\d{4}")
#: What templates without words put between their fields, as it is where one of these holds Chinese.
_WIDE: Mapping[str, str] = {", ": "，", ": ": "：", "; ": "；", " (": "（"}
_CLOSING: Mapping[str, str] = {")": "）", "): ": "）：", "), ": "），", "); ": "）；"}


class Message(str):
    """An English text that knows how it was made; as any text that was changed, a changed message is English alone."""

    __slots__ = ("_plural", "_template", "_values")

    _template: str
    _plural: str | None
    _values: Mapping[str, Any]

    def __new__(cls, template: str, plural: str | None, values: Mapping[str, Any]) -> Message:
        chosen = template if plural is None or values["count"] == 1 else plural
        try:
            text = chosen.format(**values) if values else chosen
        except Exception:  # of a value of the user's, as of an error that has no text: a message reaches no training so
            values = {name: _with_text(value) for name, value in values.items()}
            text = chosen.format(**values)
        made = str.__new__(cls, text)
        made._template, made._plural = template, plural
        as_they_are = _KEPT.issuperset(map(type, values.values()))  # as nearly all are, of a hundred thousand messages
        made._values = values if as_they_are else {name: _kept(value) for name, value in values.items()}
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Message, (self._template, self._plural, self._values)

    def __add__(self, other: str) -> str:
        return _joined(self, other)

    def __radd__(self, other: str) -> str:
        return _joined(other, self)

    def told_by(self, catalogue: gettext.NullTranslations) -> str:
        """Return the message in the language of a catalogue."""
        if self._plural is None:
            template = catalogue.gettext(self._template) if self._template else ""  # whose translation is the header
        else:
            template = catalogue.ngettext(self._template, self._plural, self._values["count"])
        if not self._values:
            return template
        return _filled(template, {name: _told(value, catalogue) for name, value in self._values.items()})


class _Sentence(Message):
    """A message as a sentence: with a capital and a full stop."""

    __slots__ = ("_whole",)

    _whole: Message

    def __new__(cls, whole: Message) -> _Sentence:
        text = str(whole)
        made = str.__new__(cls, _as_sentence(text))
        made._whole = whole
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _Sentence, (self._whole,)

    def told_by(self, catalogue: gettext.NullTranslations) -> str:
        text = self._whole.told_by(catalogue)
        return text if text.endswith(("。", "？", ".", "?")) else f"{text}。"


class _Beginning(Message):
    """A message as far as its first colon."""

    __slots__ = ("_whole",)

    _whole: Message

    def __new__(cls, whole: Message) -> _Beginning:
        made = str.__new__(cls, str(whole).partition(": ")[0])
        made._whole = whole
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _Beginning, (self._whole,)

    def told_by(self, catalogue: gettext.NullTranslations) -> str:
        return re.split("：|: ", self._whole.told_by(catalogue), maxsplit=1)[0]


#: Types whose values are kept as they are.
_KEPT = frozenset((str, float, int, bool, Message))


def tr(template: str, /, **values: Any) -> str:
    """Return a message. ``values`` fill the fields of ``template``, if there are any; each may be a message itself."""
    return Message(template, None, values)


def tr_count(one: str, many: str, /, count: int, **values: Any) -> str:
    """Return the message for one or for many of something, as ``count`` says."""
    return Message(one, many, {"count": count, **values})


def tr_join(between: str, texts: Iterable[str]) -> str:
    """Join texts as `str.join` does; messages among them stay messages, and so does ``between``."""
    parts = {f"part{number}": text for number, text in enumerate(texts)}
    return Message("{between}".join(f"{{{name}}}" for name in parts), None, {**parts, "between": between})


def tr_list(texts: Iterable[str]) -> str:
    """Join members of a list with commas, in Chinese with those of lists; messages among them stay messages."""
    return tr_join(tr(", "), texts)


def to_plain(text: str) -> str | dict[str, Any]:
    """Return what every JSON library writes of a text: of a message its parts, so that it can be told again."""
    if type(text) is not Message:
        return str(text)
    values = {name: _plain_value(value) for name, value in text._values.items()}
    return {"text": str(text), "template": text._template, "plural": text._plural, "values": values}


def _plain_value(value: Any) -> Any:
    if isinstance(value, str):
        return to_plain(value)
    plain = value if type(value) in _KEPT else getattr(value, "item", value.__str__)()  # a scalar of numpy
    return plain if type(plain) in _KEPT else str(plain)


def from_plain(content: Mapping[str, Any]) -> str:
    """Return the message that `to_plain` made these parts of; its text alone where parts of them are not.

    :raises KeyError, TypeError: there is no text
    """
    text, template, plural = (content[key] for key in ("text", "template", "plural"))
    values = content["values"]
    if not isinstance(text, str):
        raise TypeError(text)
    if not isinstance(template, str) or not isinstance(values, dict) or _WIDTH.search(template):
        return text
    counts = type(plural) is str and type(values.get("count")) is int
    if not (plural is None or counts) or any(type(each) not in _KEPT for each in values.values()):
        return text
    made = str.__new__(Message, text)
    made._template, made._plural, made._values = template, plural, values
    return made


def tr_sentence(text: str) -> str:
    """Return a text with a capital and a full stop; that of a message stays a message."""
    return _Sentence(text) if isinstance(text, Message) else _as_sentence(text)


def tr_beginning(text: str) -> str:
    """Return a text as far as its first colon; that of a message stays a message."""
    return _Beginning(text) if isinstance(text, Message) else text.partition(": ")[0]


def translated(text: object) -> str:
    """Return a text, or the text of an error, in the language of the user."""
    if isinstance(text, BaseException):
        text = _message_of(text)
    return translator()(text) if isinstance(text, Message) else str(text)


def translator() -> Callable[[object], str]:
    """Return what tells texts in the language that the user has now, for many of them."""
    wanted = language()
    if wanted == "en":
        return str
    return lambda text: str(_told(text, _catalogue(wanted)) if isinstance(text, Message) else text)


def language() -> str:
    """Return the language to tell messages in: a key of `LANGUAGES`."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted in LANGUAGES:
        return wanted
    locale = next(filter(None, map(os.environ.get, _LOCALE)), "") or ""
    return "zh" if locale.lower().startswith("zh") else "en"


def refused_language() -> str:
    """Return what ``MSPROBE_LANG`` asks for and is not there; "" where that is nothing."""
    wanted = os.environ.get(VARIABLE, "")
    return "" if wanted in LANGUAGES else wanted


@contextlib.contextmanager
def speaking(name: str | None) -> Iterator[None]:
    """Tell messages in this language, here and in processes that begin meanwhile; None leaves it as it is."""
    before = os.environ.get(VARIABLE)
    if name is not None:
        os.environ[VARIABLE] = name
    try:
        yield
    finally:
        if name is not None:
            os.environ.pop(VARIABLE, None)
            if before is not None:
                os.environ[VARIABLE] = before


def texts_in(context: str) -> dict[str, str]:
    """Return what the catalogue of the language holds in a context: English → translated; nothing for English."""
    found: Mapping[Any, str] = getattr(_catalogue(language()), "_catalog", {})
    beginning = context + _BETWEEN
    return {key.removeprefix(beginning): text for key, text in found.items() if str(key).startswith(beginning)}


@cache
def _catalogue(name: str) -> gettext.NullTranslations:
    """The catalogue of a language; an empty one, which leaves all in English, where it cannot be read."""
    locale = LANGUAGES[name]
    if locale is not None:
        with contextlib.suppress(Exception):  # whatever a damaged file makes of the reader, there is English
            file = resources.files("msprobe_ms") / "locale" / locale / "LC_MESSAGES" / f"{_DOMAIN}.mo"
            with file.open("rb") as opened:
                return gettext.GNUTranslations(opened)
    return gettext.NullTranslations()


def _told(value: Any, catalogue: gettext.NullTranslations) -> Any:
    """A value in the language of a catalogue; what is no message stays what it is."""
    if not isinstance(value, Message):
        said = _SYSTEM.get(value) if type(value) is str else None
        return value if said is None else catalogue.gettext(said)
    try:
        return value.told_by(catalogue)
    except (LookupError, ValueError, TypeError, AttributeError):  # a translation with other fields than its message
        return str(value)


def _message_of(error: BaseException) -> str:
    first = error.args[0] if len(error.args) == 1 else None
    return first if isinstance(first, Message) else str(error)


def _with_text(value: Any) -> Any:
    """A value that has a text; of another what it is."""
    try:
        str(value)
    except Exception:
        return f"<{type(value).__name__}>"
    return value


def _kept(value: Any) -> Any:
    """What is kept of a value to tell it again, in this process or in another."""
    if type(value) in _KEPT:
        return value
    if isinstance(value, BaseException):
        return _message_of(value)
    return value if isinstance(value, (str, Number)) else str(value)


def _as_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"


def _filled(template: str, values: Mapping[str, Any]) -> str:
    """A translated template with its fields: one space between Chinese and other words, whichever a field holds."""
    pieces = []
    for literal, field, spec, _ in Formatter().parse(template):
        pieces += [literal, "" if field is None else _formatted(values[field], spec or "")]
    pieces = [piece for piece in pieces if piece]
    filled = ""
    for piece, after in zip(pieces, [*pieces[1:], ""], strict=True):
        if piece[0] == ")" and filled.count("（") > filled.count("）"):
            piece = _CLOSING.get(piece, piece)
        if piece in _WIDE and (_CHINESE.search(filled) or _CHINESE.search(after)):
            piece = _WIDE[piece]
        filled = _beside(filled, piece)
    return filled


def _formatted(value: Any, spec: str) -> str:
    """A field in its format; a text in a width takes so many columns of a terminal."""
    if isinstance(value, str) and (column := _COLUMN.fullmatch(spec)):
        return padded(value, int(column["width"]), right=column["side"] == ">")
    return format(value, spec)


def _beside(before: str, after: str) -> str:
    """Two pieces of a text, where one is a field: without a space within Chinese, with one between it and a word."""
    if before.endswith(" ") and _needs_none(before[-2:-1], after[:1]):
        return before[:-1] + after
    if after.startswith(" ") and _needs_none(before[-1:], after[1:2]):
        return before + after[1:]
    apart = (_CHINESE, _WORD), (_WORD, _CHINESE)
    if any(one.match(before[-1:]) and other.match(after) for one, other in apart):
        return f"{before} {after}"
    return before + after


def _needs_none(before: str, after: str) -> bool:
    """Whether two letters have no space between them: two of Chinese, or any beside a wide sign."""
    wide = _SIGN.match(before) or _SIGN.match(after)
    return bool(before.strip() and after.strip() and (wide or (_CHINESE.match(before) and _CHINESE.match(after))))


def _joined(first: str, second: str) -> str:
    return Message("{first}{second}", None, {"first": first, "second": second})


#: What the system says most often of files, as ``OSError.strerror`` has it.
_SYSTEM: Mapping[str, str] = {
    str(text): str(text)
    for text in (
        tr("No such file or directory"),
        tr("Permission denied"),
        tr("Operation not permitted"),
        tr("Is a directory"),
        tr("Not a directory"),
        tr("Directory not empty"),
        tr("File exists"),
        tr("File name too long"),
        tr("File too large"),
        tr("No space left on device"),
        tr("Disk quota exceeded"),
        tr("Read-only file system"),
        tr("Input/output error"),
        tr("Stale file handle"),
        tr("Too many open files"),
        tr("Too many levels of symbolic links"),
        tr("Connection refused"),
        tr("Connection reset by peer"),
        tr("Connection timed out"),
    )
}
