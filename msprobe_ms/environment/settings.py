"""What the files of a training set: the settings that count, and every value of those that have several.

A default that a script declares holds only where no command line gives the option. Otherwise nothing tells which of
several values a training used: all of them are kept, and compared.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from msprobe_ms.support.log import logger
from msprobe_ms.support.text import listed
from msprobe_ms.support.translation import tr

#: What stands in the place of a secret.
NOT_KEPT = "(not kept)"
#: Settings that may hold a secret; ``num_key_value_heads`` and ``max_tokens`` do not.
_SECRET = re.compile(r"(^|[._-])(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)


class Given(Enum):
    """How a file gives a value: as an option of a command line, as the default of an option, or otherwise.

    ``FOR_MSPROBE``: it gives none, and says that the option of this name is none of the training.
    """

    OPTION = "option"
    DEFAULT = "default"
    VALUE = "value"
    FOR_MSPROBE = "for msprobe"


#: Texts of truth values → the numbers that Python has for them.
_TRUTH = {"true": 1.0, "false": 0.0}


class Setting(NamedTuple):
    """A value that a file gives; ``command``: of an option, the program that it is given to."""

    name: str
    value: Any
    given: Given = Given.VALUE
    command: str = ""


#: What settings are called alike → one name.
_SYNONYMS = {
    "lr": "learning_rate", "micro_batch_size": "batch_size", "per_device_train_batch_size": "batch_size",
    "bs": "batch_size",
    "wd": "weight_decay", "seq_len": "seq_length", "max_seq_length": "seq_length", "num_layer": "num_layers",
    "num_hidden_layers": "num_layers", "beta1": "adam_beta1", "beta2": "adam_beta2",
    "adam_epsilon": "adam_eps", "clip": "clip_grad", "max_grad_norm": "clip_grad", "random_seed": "seed",
    "manual_seed": "seed", "num_heads": "num_attention_heads", "hidden_dim": "hidden_size",
}  # fmt: skip


def may_be_secret(name: str) -> bool:
    """Return whether a setting or a variable of this name may hold a secret."""
    return _SECRET.search(name) is not None


def canonical(name: str) -> str:
    """Return the one name of a setting: ``--lr`` and ``learning-rate`` are ``learning_rate``."""
    plain = name.lower().replace("-", "_")
    head, dot, last = plain.rpartition(".")
    return f"{head}{dot}{_SYNONYMS.get(last, last)}"


def settled(files: Mapping[str, Iterable[Setting]]) -> dict[str, Any]:
    """Return name → value of all files' settings; a list of values where they give several, which is told.

    ``files``: the name of each file → what it gives
    """
    given = [(file, _without_secret(setting)) for file, settings in files.items() for setting in settings]
    given = list(_of_training(given))
    options = {canonical(setting.name) for _, setting in given if setting.given is Given.OPTION}
    given = [
        (file, setting)
        for file, setting in _told_apart(given)
        if setting.given is not Given.DEFAULT or canonical(setting.name) not in options
    ]
    by_name: dict[str, list[tuple[str, Setting]]] = {}
    for file, setting in given:
        by_name.setdefault(canonical(setting.name), []).append((file, setting))
    for name, found in by_name.items():
        _tell_conflict(name, found)
    return together((setting.name, setting.value) for _, setting in given)


def _of_training(given: list[tuple[str, Setting]]) -> Iterator[tuple[str, Setting]]:
    """Leave out the options that scripts have for msprobe alone, unless another script has one of the same name."""
    names: dict[Given, set[str]] = {}
    for _, setting in given:
        names.setdefault(setting.given, set()).add(canonical(setting.name))
    left_out = names.get(Given.FOR_MSPROBE, set()) - names.get(Given.DEFAULT, set())
    for file, setting in given:
        is_left_out = setting.given is Given.OPTION and canonical(setting.name) in left_out
        if setting.given is not Given.FOR_MSPROBE and not is_left_out:
            yield file, setting


def _told_apart(given: list[tuple[str, Setting]]) -> Iterator[tuple[str, Setting]]:
    """Options that one file gives to several commands, each under the name of its command: ``train.batch-size``."""
    commands: dict[tuple[str, str], set[str]] = {}
    for file, setting in given:
        if setting.given is Given.OPTION:
            commands.setdefault((file, canonical(setting.name)), set()).add(setting.command)
    for file, setting in given:
        several = len(commands.get((file, canonical(setting.name)), ())) > 1 and setting.given is Given.OPTION
        yield file, setting._replace(name=f"{setting.command}.{setting.name}") if several else setting


def together(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return name → value; a list of the values that differ where a name has several."""
    found: dict[str, dict[Hashable, Any]] = {}
    for name, value in pairs:
        for each in value if isinstance(value, list) else [value]:
            found.setdefault(name, {}).setdefault(plain(each), each)
    return {name: next(iter(values.values())) if len(values) == 1 else [*values.values()]
            for name, values in found.items()}  # fmt: skip


def same(one: Any, other: Any) -> bool:
    """Return whether two settings are equal: as numbers, ``1e-4`` is ``0.0001``; ``True`` is ``true`` and 1.

    Of lists, which hold all values of a setting, the order means nothing.
    """
    first, second = ({plain(each) for each in (side if isinstance(side, list) else [side])} for side in (one, other))
    return first == second


def plain(value: Any) -> Hashable:
    """Return what values that mean the same have in common."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        # A framework's constant and its name: PYNATIVE_MODE, "pynative".
        text = str(value).strip().lower().removesuffix("_mode")
        return _TRUTH.get(text, text)
    return "nan" if math.isnan(number) else number


def shown(value: Any) -> str:
    """Return a setting as it is told: several values one behind the other."""
    return "; ".join(map(str, value)) if isinstance(value, list) else str(value)


def _without_secret(setting: Setting) -> Setting:
    secret = isinstance(setting.value, str) and may_be_secret(setting.name)
    return setting._replace(value=NOT_KEPT) if secret else setting


def tell_defaults(files: Mapping[str, Iterable[Setting]]) -> list[str]:
    """Return, and say, of which files only defaults are known, as none holds a command line that may change them."""
    given = [(file, setting.given) for file, settings in files.items() for setting in settings]
    if any(how is Given.OPTION for _, how in given):
        return []
    named = list(dict.fromkeys(file for file, how in given if how is Given.DEFAULT))
    if named:
        logger.warning(
            tr(
                "{files}: only defaults are known, as no given file holds a command line; if options were given when "
                "the script was started, also give a shell script with that command",
                files=listed(named, 2),
            )
        )
    return named


def _tell_conflict(name: str, found: Iterable[tuple[str, Setting]]) -> None:
    """Warn where files give one setting values that differ."""
    by_value: dict[Hashable, tuple[Any, str]] = {}
    for file, setting in found:
        by_value.setdefault(plain(setting.value), (setting.value, file))
    if len({file for _, file in by_value.values()}) > 1:
        values = [f"{value} ({file})" for value, file in by_value.values()]
        logger.warning(
            tr("{name} has several values, and each is compared: {values}", name=name, values=listed(values, 4))
        )
