"""A json file as a dictionary, or one error that says why it is none."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from msprobe_ms.config.values import show, show_path
from msprobe_ms.support.errors import ConfigError
from msprobe_ms.support.files import open_regular
from msprobe_ms.support.text import printable

#: Largest configuration read, in bytes: a million steps, one by one, take 8 MB.
_LONGEST = 64 << 20


def read_object(file: Path) -> dict[str, Any]:
    """The object in ``file``; raises `ConfigError` naming the file and, for bad JSON, line and column."""
    name = printable(str(file))
    written, repeated = _parse(_read_text(file, name), name)
    if not isinstance(written, dict):
        raise ConfigError(f'{name}: {show(written)} is not accepted; use an object, such as {{"task": "statistics"}}')
    if repeated:
        lines = (f"{name}: the key {show(key)} is there more than once; keep one" for key in repeated)
        raise ConfigError("\n".join(lines))
    return written


def _read_text(file: Path, name: str) -> str:
    try:
        if file.is_dir():
            inside = show_path(file / "config.json")
            raise ConfigError(f"{name}: this is a folder; use the path of a json file, such as {inside}")
        with open_regular(file) as opened:
            raw = opened.read(_LONGEST + 1)
        if len(raw) > _LONGEST:
            raise ConfigError(f"{name}: larger than {_LONGEST >> 20} MiB; use the path of a configuration")
        return raw.decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{name}: no such file (looked from {os.getcwd()}); use the path of a json file") from None
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read ({error.strerror}); use a json file this user may read") from None
    except UnicodeError:
        raise ConfigError(f"{name}: this is not text in UTF-8; use the path of a json file") from None


def _parse(text: str, name: str) -> tuple[object, list[str]]:
    """The value, and the keys that some object in it holds twice (the json module would keep the last, silently)."""
    repeated: list[str] = []

    def as_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for key, value in pairs:
            if key in seen and key not in repeated:
                repeated.append(key)
            seen[key] = value
        return seen

    try:
        return json.loads(text, object_pairs_hook=as_dict), repeated
    except json.JSONDecodeError as error:
        problem = _problem(text, error)
        raise ConfigError(f"{name}: line {error.lineno}, column {error.colno}: {problem}") from None
    except (ValueError, RecursionError):  # a number of thousands of digits; nesting beyond the interpreter's stack
        raise ConfigError(f"{name}: holds a number too long or nesting too deep for a configuration") from None


def _problem(text: str, error: json.JSONDecodeError) -> str:
    if text.startswith(("//", "/*", "#"), error.pos):
        return "comments are not accepted in JSON; remove it"
    if not text.strip():
        return 'the file is empty; use an object, such as {"task": "statistics", "dump_path": "./dump_path"}'
    return f"not valid JSON ({error.msg})"
