"""Read the settings that the files of a training give: shell scripts, yaml, json and Python scripts. Nothing is run."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from msprobe_ms.environment.python_settings import settings_of_python
from msprobe_ms.environment.settings import Given, Setting, may_be_secret
from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.translation import tr
from msprobe_ms.support.yaml_files import UnreadableError, read_text, read_texts

_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
#: A variable that a shell script uses, with what it is where it is not set: ``$LR``, ``${LR}``, ``${LR:-0.1}``.
_USED = re.compile(r"\$(?:\{(?P<braced>\w+)(?::?-(?P<otherwise>[^{}$]*))?\}|(?P<bare>[A-Za-z_]\w*))")
#: Bytes of a file, and settings of one.
_LONGEST, _MOST = 4 << 20, 100_000
#: Characters of a number; what is longer is a text.
_LONGEST_NUMBER = 40
#: Characters of a word with its variables filled in.
_LONGEST_WORD = 10_000
#: What stands between two commands.
_BETWEEN = (";", "&&", "||", "|", "&")
#: Endings of files that are no shell scripts.
_PARSED = (".yaml", ".yml", ".json", ".py")


def settings_of(file: Path) -> Iterator[Setting]:
    """Yield the settings that a file gives. Raises UsageError where it cannot be read."""
    if file.is_dir():
        raise UsageError(
            tr(
                "{file}: is a folder; name the files in it that hold settings: shell scripts (.sh), Python scripts "
                "(.py), .yaml or .json",
                file=file,
            )
        )
    try:
        if file.suffix.lower() in (".yaml", ".yml", ".json"):
            found = list(_flat(read_texts(file, _LONGEST)))
        elif file.suffix.lower() == ".py":
            found = list(settings_of_python(read_text(file, _LONGEST)))
        else:
            found = list(_of_shell(read_text(file, _LONGEST)))
    except UnreadableError as error:
        raise UsageError(f"{file}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(
            tr("{file}: {error}; accepted are shell scripts, yaml, json and Python scripts", file=file, error=error)
        ) from None
    if len(found) > _MOST:
        raise UsageError(
            tr("{file}: holds more than {most} settings; give the file of one training", file=file, most=_MOST)
        )
    yield from found


def _flat(content: Any) -> Iterator[Setting]:
    """``{"a": {"b": ["1"]}}`` as ``a.b.0`` → 1. Raises ValueError of more than hands write, as aliases make it."""
    waiting = [("", content)]
    for _ in range(_MOST):
        if not waiting:
            return
        place, value = waiting.pop()
        if isinstance(value, (dict, list)):
            inside = value.items() if isinstance(value, dict) else enumerate(value)
            waiting += [(f"{place}.{key}" if place else str(key), each) for key, each in inside][::-1]
        elif place:
            yield Setting(place, _value(str(value)))
    raise ValueError(tr("it holds more than {most} settings", most=_MOST))


def _of_shell(text: str) -> Iterator[Setting]:
    """Variables that a script sets, and options: ``LR=1e-4``, ``--lr 1e-4``, ``--lr=$LR``, ``--bf16``."""
    variables: dict[str, str] = {}
    met: Counter[str] = Counter()
    for words in _commands(text):
        name = _program(words)
        met[name] += any(word.startswith("--") for word in words)
        command = f"{name}{met[name]}" if met[name] > 1 else name
        yield from (each._replace(command=command) for each in _of_command(words, variables))


def _of_command(words: Iterable[str], variables: dict[str, str]) -> Iterator[Setting]:
    """The options of one command; what it assigns is added to ``variables``."""
    waiting = ""
    for word in (_filled(word, variables) for word in words):
        if word.startswith("--") and len(word) > 2:
            if waiting:
                yield Setting(waiting, True, Given.OPTION)
            waiting, equal, value = word[2:].partition("=")
            if equal:
                yield Setting(waiting, _value(value), Given.OPTION)
                waiting = ""
        elif waiting:
            yield Setting(waiting, _value(word), Given.OPTION)
            waiting = ""
        elif found := _ASSIGNMENT.fullmatch(word):
            variables[found[1]] = found[2]
            yield Setting(found[1], _value(found[2]))
    if waiting:
        yield Setting(waiting, True, Given.OPTION)


def _commands(text: str) -> Iterator[list[str]]:
    """The words of each command of a shell script."""
    for line in text.replace("\\\n", " ").splitlines():
        words: list[str] = []
        for word in _words(line):
            ends = word in _BETWEEN or (word.endswith(";") and len(word) > 1)
            if word not in _BETWEEN:
                words.append(word.removesuffix(";"))
            if ends:
                yield words
                words = []
        yield words


def _program(words: Sequence[str]) -> str:
    """What a command runs: its script or module, behind whatever starts it, else its first word."""
    script = next((word for word in words if word.endswith((".py", ".sh"))), None)
    if script is None and "-m" in words[:-1]:
        return words[words.index("-m") + 1]
    plain = (word for word in words if not _ASSIGNMENT.fullmatch(word))
    return PurePath(script).stem if script is not None else PurePath(next(plain, "")).name


def missing_scripts(files: Iterable[Path]) -> list[str]:
    """Return the Python scripts that shell scripts among ``files`` start and that are not among them."""
    files = list(files)
    found: dict[str, None] = {}
    for file in files:
        if file.suffix.lower() not in _PARSED:
            for words in _commands(read_text(file, _LONGEST)):
                found |= dict.fromkeys(PurePath(word).name for word in words if word.endswith(".py"))
    return [name for name in found if name not in {file.name for file in files}]


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # a quotation that goes on in the next line
        return line.split()


def _filled(word: str, variables: Mapping[str, str]) -> str:
    """A word with the values of the script's own variables; what is not known, or secret, stays as it is written."""

    def value(used: re.Match[str]) -> str:
        name = used["braced"] or used["bare"]
        return used[0] if may_be_secret(name) else variables.get(name, used["otherwise"] or used[0])

    filled = _USED.sub(value, word)
    return filled if len(filled) <= _LONGEST_WORD else word


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text) if len(text) < _LONGEST_NUMBER else text
        except ValueError:
            continue
    return text
