"""Load a configuration: a json file and a debugger's arguments → one `Config`, or one error with all mistakes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from msprobe_ms.config.model import GENERAL_KEYS, Config
from msprobe_ms.config.values import Rejected, beside_or_here, writable_folder
from msprobe_ms.config.vocabulary import KERNEL_KEYS, ONLINE_KEYS, OTHER_TASKS, SECTION_KEYS, TASKS
from msprobe_ms.config.without_effect import GeneralWithoutEffect, SectionWithoutEffect
from msprobe_ms.support.errors import ConfigError
from msprobe_ms.support.files import open_regular
from msprobe_ms.support.text import printable, show, show_path, suggestion
from msprobe_ms.support.translation import tr, tr_join, tr_list

#: Used when no file is given; the repository's ``configs/config.json`` holds the same.
DEFAULT_FILE = Path(__file__).with_name("default.json")

_SECTIONS = (*TASKS, *OTHER_TASKS)
_MOST_LINES = 20

#: What pydantic found, and what would have been accepted.
_ACCEPTED_BY_TYPE = {
    "bool_type": tr("true or false"),
    "string_type": tr("a text in quotes"),
    "path_type": tr("a path"),
    "int_type": tr("a whole number"),
    "list_type": tr('a list of texts, such as ["relu"]'),
    "tuple_type": tr('a list of texts, such as ["relu"]'),
    "frozen_set_type": tr('a list, such as ["all"]'),
}

Place = tuple[str | int, ...]
Mistake = tuple[Place, str]


def load_config(
    config_path: str | os.PathLike[str] | None = None,
    *,
    task: str | None = None,
    dump_path: str | os.PathLike[str] | None = None,
    level: str | None = None,
    step: Any = None,
    settings: Mapping[str, Any] | None = None,
) -> Config:
    """Read ``config_path`` (None: the package's default) and let the other arguments override its keys.

    ``settings`` are further keys, those of the task's section among them. ``dump_path`` becomes absolute; nothing is
    created. Raises `ConfigError`, one line a mistake.
    """
    file = DEFAULT_FILE if config_path is None else _as_path(config_path)
    written = read_object(file)
    given = {"task": task, "dump_path": dump_path, "level": level, "step": step}
    arguments = {key: value for key, value in [*(settings or {}).items(), *given.items()] if value is not None}
    at_the_top = {key: value for key, value in arguments.items() if key not in SECTION_KEYS}
    general = {key: value for key, value in (written | at_the_top).items() if value is not None}

    active, section, mistakes = _active_section(general)
    section |= {key: value for key, value in arguments.items() if key in SECTION_KEYS}
    mistakes += _unknown_keys(general, section, active, arguments)
    ignored: list[str] = []
    # Of level L2 alone, and elsewhere in a file without effect.
    device = general.pop("acl_config", "") if general.get("level") == "L2" else ""
    sent = ONLINE_KEYS if active == "tensor" and section.get("online_run_ut") else ()
    idle = {key: value for key, value in section.items() if key not in sent}
    for model, values, place in ((GeneralWithoutEffect, general, ()), (SectionWithoutEffect, idle, (active,))):
        keys, problems = _without_effect(model, values)
        ignored += [_path_text((*place, key)) for key in keys]
        mistakes += [((*place, *where), text) for where, text in problems]

    wanted = {key: general[key] for key in GENERAL_KEYS if key in general and key != "acl_config"}
    wanted |= {} if device == "" else {"acl_config": device}
    wanted |= {key: section[key] for key in (*SECTION_KEYS, *sent) if key in section}
    if wanted.get("task") == "exception_dump":
        wanted.setdefault("level", "L2")
    ignored += [_path_text((active, key)) for key in _idle_kernel_keys(wanted)]
    mistakes += _resolve_paths(wanted, file)
    try:
        config = Config(**wanted, ignored=tuple(ignored))
    except ValidationError as error:
        found = _mistakes_of(error)
        mistakes += [((active, *where) if where[0] in (*SECTION_KEYS, *sent) else where, text) for where, text in found]
    if mistakes:
        raise ConfigError(_report(mistakes, printable(str(file)), arguments, active))
    return config


def _as_path(config_path: object) -> Path:
    path = os.fspath(config_path) if isinstance(config_path, (str, os.PathLike)) else None
    if not isinstance(path, str) or not path or "\0" in path:
        accepted = tr("use the path of a json file")
        if isinstance(config_path, dict):
            accepted += tr(", or the arguments task, dump_path, level and step")
        raise ConfigError(
            tr(
                "argument config_path: {config_path} is not accepted; {accepted}",
                config_path=show(config_path),
                accepted=accepted,
            )
        )
    return Path(path)


def _active_section(general: dict[str, Any]) -> tuple[str, dict[str, Any], list[Mistake]]:
    """The name and the content of the task's section; a task that is itself a mistake has an empty one."""
    task = general.get("task", "statistics")
    if task not in TASKS:
        return "statistics", {}, []
    section = general.get(task, {})
    if not isinstance(section, dict):
        return (
            task,
            {},
            [((task,), tr('{section} is not accepted; use an object, such as {{"list": []}}', section=show(section)))],
        )
    return task, {key: value for key, value in section.items() if value is not None}, []


def _unknown_keys(
    general: dict[str, Any], section: dict[str, Any], active: str, arguments: Mapping[str, Any]
) -> Iterator[Mistake]:
    """Keys that nothing knows. An argument may be a key of the task's section as well."""
    useful = [key for key, tasks in SECTION_KEYS.items() if active in tasks]
    useful += ONLINE_KEYS if active == "tensor" else ()
    known = (*GENERAL_KEYS, *GeneralWithoutEffect.model_fields, *_SECTIONS)
    for key in general:
        if key not in known:
            home = (
                tr('this key belongs in the section "{active}"', active=active)
                if key in (*SECTION_KEYS, *ONLINE_KEYS)
                else ""
            )
            elsewhere = useful if key in arguments else ()
            yield (key,), home or _unknown(key, (*GENERAL_KEYS, *elsewhere), (*known, *elsewhere))
    known = (*useful, *KERNEL_KEYS, *SectionWithoutEffect.model_fields)
    for key in section:
        if key not in known:
            home = tr("this key belongs at the top of the file") if key in GENERAL_KEYS else ""
            yield (active, key), home or _unknown(key, useful, known)


def _unknown(key: str, useful: Iterable[str], known: Iterable[str]) -> str:
    return tr("unknown key; use one of {useful}{suggestion}", useful=tr_list(useful), suggestion=suggestion(key, known))


def _without_effect(model: type[BaseModel], values: dict[str, Any]) -> tuple[list[str], list[Mistake]]:
    """The keys that ask for something and have no effect, and the mistakes in such keys."""
    try:
        accepted = model(**{key: value for key, value in values.items() if key in model.model_fields})
    except ValidationError as error:
        return [], list(_mistakes_of(error))
    nothing = model()
    return [key for key in model.model_fields if getattr(accepted, key) != getattr(nothing, key)], []


def _idle_kernel_keys(wanted: dict[str, Any]) -> Iterator[str]:
    """The keys for kernels of compiled graphs that ask for something where level or task have none."""
    for key, tasks in KERNEL_KEYS.items():
        asks = key in wanted and wanted[key] != Config.model_fields[key].default
        if asks and (wanted.get("level") != "L2" or wanted.get("task", "statistics") not in tasks):
            yield key


def _resolve_paths(wanted: dict[str, Any], file: Path) -> Iterator[Mistake]:
    """Make paths absolute in place; values that are no paths are left for the model to refuse."""
    beside = partial(beside_or_here, config_file=file)
    for key, resolve in (("dump_path", writable_folder), ("api_list", beside), ("acl_config", beside)):
        value = wanted.get(key)
        if not isinstance(value, (str, os.PathLike)) or not str(value).strip() or "\0" in str(value):
            continue
        try:
            wanted[key] = resolve(Path(value).expanduser())
        except Rejected as rejected:
            yield from (((key, *where), text) for where, text in rejected.mistakes)
        except (OSError, ValueError, RuntimeError, TypeError) as error:  # too long, not encodable, ~nobody, bytes
            reason = (error.strerror if isinstance(error, OSError) else None) or printable(str(error))
            yield (
                (key,),
                tr("{value} cannot be used ({reason}); use another path", value=show_path(value), reason=reason),
            )


def _mistakes_of(error: ValidationError) -> Iterator[Mistake]:
    for found in error.errors(include_url=False):
        raised = found.get("ctx", {}).get("error")
        if isinstance(raised, Rejected):
            yield from (((*found["loc"], *where), text) for where, text in raised.mistakes)
        elif found["type"] == "missing":
            yield found["loc"], tr('this key is missing; use the folder for the dump, such as "./dump_path"')
        else:
            accepted = _ACCEPTED_BY_TYPE.get(found["type"], found["msg"])
            yield (
                found["loc"],
                tr("{found} is not accepted; use {accepted}", found=show(found["input"]), accepted=accepted),
            )


def _path_text(place: Place) -> str:
    """``("statistics", "data_mode", 0)`` as ``statistics.data_mode[0]``."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if part.isidentifier() else show(part)
            text += f".{name}" if text else name
    return text


def _report(mistakes: list[Mistake], file: str, arguments: dict[str, Any], active: str) -> str:
    lines = []
    for place, text in dict.fromkeys(mistakes):
        if len(place) > 1 and place[0] == active and place[1] in arguments:
            place = place[1:]
        source = tr("argument ") if place[0] in arguments else f"{file}: "
        lines.append(tr("{source}{place}: {text}", source=source, place=_path_text(place), text=text))
    left_out = len(lines) - _MOST_LINES
    return tr_join(
        "\n", lines[:_MOST_LINES] + ([tr("… and {left_out} more mistakes", left_out=left_out)] if left_out > 0 else [])
    )


#: Largest configuration read, in bytes: a million steps, one by one, take 8 MB.
_LONGEST = 64 << 20


def read_object(file: Path) -> dict[str, Any]:
    """Return the object in ``file``; raises `ConfigError` naming the file and, for bad JSON, line and column."""
    name = printable(str(file))
    written, repeated = _parse(_read_text(file, name), name)
    if not isinstance(written, dict):
        raise ConfigError(
            tr(
                '{name}: {written} is not accepted; use an object, such as {{"task": "statistics"}}',
                name=name,
                written=show(written),
            )
        )
    if repeated:
        lines = (
            tr("{name}: the key {key} is there more than once; keep one", name=name, key=show(key)) for key in repeated
        )
        raise ConfigError(tr_join("\n", lines))
    return written


def _read_text(file: Path, name: str) -> str:
    try:
        if file.is_dir():
            inside = show_path(file / "config.json")
            raise ConfigError(
                tr("{name}: this is a folder; use the path of a json file, such as {inside}", name=name, inside=inside)
            )
        with open_regular(file) as opened:
            raw = opened.read(_LONGEST + 1)
        if len(raw) > _LONGEST:
            raise ConfigError(
                tr(
                    "{name}: larger than {longest} MiB; use the path of a configuration",
                    name=name,
                    longest=_LONGEST >> 20,
                )
            )
        return raw.decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(
            tr(
                "{name}: no such file (looked from {folder}); use the path of a json file",
                name=name,
                folder=os.getcwd(),
            )
        ) from None
    except OSError as error:
        raise ConfigError(
            tr(
                "{name}: cannot be read ({strerror}); use a json file this user may read",
                name=name,
                strerror=error.strerror,
            )
        ) from None
    except UnicodeError:
        raise ConfigError(tr("{name}: this is not text in UTF-8; use the path of a json file", name=name)) from None


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
        raise ConfigError(
            tr(
                "{name}: line {lineno}, column {colno}: {problem}",
                name=name,
                lineno=error.lineno,
                colno=error.colno,
                problem=problem,
            )
        ) from None
    except (ValueError, RecursionError):  # a number of thousands of digits; nesting beyond the interpreter's stack
        raise ConfigError(
            tr("{name}: holds a number too long or nesting too deep for a configuration", name=name)
        ) from None


def _problem(text: str, error: json.JSONDecodeError) -> str:
    if text.startswith(("//", "/*", "#"), error.pos):
        return tr("comments are not accepted in JSON; remove it")
    if not text.strip():
        return tr('the file is empty; use an object, such as {"task": "statistics", "dump_path": "./dump_path"}')
    return tr("not valid JSON ({msg})", msg=error.msg)
