"""What is known of an API by its name: how a change of its results is to be judged, and whether it can be repeated."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import translate
from functools import cache
from pathlib import Path

from msprobe_ms.support.yaml_files import read_texts

_FILE = Path(__file__).with_name("api_kinds.yaml")


@dataclass(frozen=True, slots=True)
class ApiKind:
    """The lists of ``api_kinds.yaml`` in which an API stands."""

    jumps: bool = False
    gradient_jumps: bool = False
    sums: bool = False
    losses: bool = False
    angles: bool = False
    symmetric: bool = False
    undefined: bool = False
    with_functions: bool = False


def plain_name(name: str) -> str:
    """Return an API's name as the lists have it.

    >>> plain_name("mindspore.ops.reduce_sum"), plain_name("__matmul__"), plain_name("ReduceSum")
    ('reducesum', 'matmul', 'reducesum')
    """
    return name.rpartition(".")[2].replace("_", "").lower()


@cache
def kind_of(name: str) -> ApiKind:
    """Return what is known of an API, by the last part of its name."""
    plain = plain_name(name)
    return ApiKind(**{key: True for key, pattern in _patterns().items() if pattern.fullmatch(plain)})


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    lists = read_texts(_FILE, _FILE.stat().st_size)
    return {key: re.compile("|".join(map(translate, names))) for key, names in lists.items()}
