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
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from numbers import Number
from typing import Any

#: What a user may ask for → the locale of its catalogue; none for English, which is in the sources.
LANGUAGES: Mapping[str, str | None] = {"en": None, "zh": "zh_CN"}
#: Names the language, before any locale.
VARIABLE = "MSPROBE_LANG"
#: What says which language a locale has: the first that is set counts.
_LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")
_DOMAIN = "msprobe_ms"
#: Between a context and its message, in catalogues.
_BETWEEN = "\x04"


class Message(str):
    """An English text that knows how it was made; as any text that was changed, a changed message is English alone."""

    __slots__ = ("_plural", "_template", "_values")

    _template: str
    _plural: str | None
    _values: Mapping[str, Any]

    def __new__(cls, template: str, plural: str | None, values: Mapping[str, Any]) -> Message:
        chosen = template if plural is None or values["count"] == 1 else plural
        made = super().__new__(cls, chosen.format(**values) if values else chosen)
        made._template, made._plural = template, plural
        made._values = {name: _kept(value) for name, value in values.items()} if values else {}
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
        return template.format(**{name: _told(value, catalogue) for name, value in self._values.items()})


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


def tr(template: str, /, **values: Any) -> str:
    """Return a message. ``values`` fill the fields of ``template``, if there are any; each may be a message itself."""
    return Message(template, None, values)


def tr_count(one: str, many: str, /, count: int, **values: Any) -> str:
    """Return the message for one or for many of something, as ``count`` says."""
    return Message(one, many, {"count": count, **values})


def tr_join(between: str, texts: Iterable[str]) -> str:
    """Join texts as `str.join` does; messages among them stay messages."""
    parts = {f"part{number}": text for number, text in enumerate(texts)}
    return Message(between.replace("{", "{{").replace("}", "}}").join(f"{{{name}}}" for name in parts), None, parts)


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
    if not isinstance(text, Message) or (wanted := language()) == "en":
        return str(text)
    return str(_told(text, _catalogue(wanted)))


def language() -> str:
    """Return the language to tell messages in: a key of `LANGUAGES`."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted in LANGUAGES:
        return wanted
    locale = next(filter(None, map(os.environ.get, _LOCALE)), "") or ""
    return "zh" if locale.lower().startswith("zh") else "en"


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
        return value
    try:
        return value.told_by(catalogue)
    except (LookupError, ValueError, TypeError, AttributeError):  # a translation with other fields than its message
        return str(value)


def _message_of(error: BaseException) -> str:
    first = error.args[0] if len(error.args) == 1 else None
    return first if isinstance(first, Message) else str(error)


def _kept(value: Any) -> Any:
    """What is kept of a value to tell it again, in this process or in another."""
    if isinstance(value, BaseException):
        return _message_of(value)
    return value if isinstance(value, (str, Number)) else str(value)


def _as_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"


def _joined(first: str, second: str) -> str:
    return Message("{first}{second}", None, {"first": first, "second": second})
