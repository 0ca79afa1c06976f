"""Give APIs and layer classes of MindSpore and PyTorch one word each: built-in tables of what is the same.

The words are PyTorch's names of functions, without underscores. ``mindspore_pytorch.yaml`` is the public table of
pairs, ``operations.yaml`` what it leaves open: primitives, operators, families, and what several calls of one side are
in one of the other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import resources
from typing import Any

import yaml

from msprobe_ms.dump.dialects import PRIMITIVE
from msprobe_ms.dump.names import EntryName
from msprobe_ms.support.yaml_files import FASTEST_LOADER

#: Endings of primitive classes that stand for a form of the operator: ``MatMulExt``, ``PadV3``, ``GatherD``.
_FORM = re.compile(r"(Ext|(?<=[a-z])V\d|(?<=[a-z])D)$")
#: What stands around a function's name and changes nothing: ``npu_rms_norm``, ``inplace_add``, ``einsum_ext``.
_AFFIXES = re.compile(r"^(npu|inplace)_|_ext$")


@dataclass(frozen=True, slots=True)
class Part:
    """One call of a group: its operation or family, and whether it may be missing."""

    word: str
    optional: bool


@dataclass(frozen=True)
class Tables:
    """The built-in tables.

    ``apis``        MindSpore ``Prefix.api`` → PyTorch ``Prefix.api``, the public table
    ``mindspore``   MindSpore ``Prefix.api`` → operation
    ``primitives``  class of a primitive → operation
    ``functions``   name of a MindSpore function without underscores → operation, for primitives named like it
    ``arguments``   class of a primitive → places of its tensors in the order of PyTorch's function
    ``synonyms``    name → operation
    ``families``    operation → family
    ``groups``      operation → the calls it is made of on the other side
    ``classes``     class of a layer, in lower case → PyTorch's, in lower case
    """

    apis: dict[str, str] = field(default_factory=dict)
    mindspore: dict[str, str] = field(default_factory=dict)
    primitives: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, list[int]] = field(default_factory=dict)
    synonyms: dict[str, str] = field(default_factory=dict)
    families: dict[str, str] = field(default_factory=dict)
    groups: dict[str, tuple[Part, ...]] = field(default_factory=dict)
    classes: dict[str, str] = field(default_factory=dict)


@cache
def tables() -> Tables:
    """Read the built-in tables, once a process."""
    public, more = _read("mindspore_pytorch.yaml"), _read("operations.yaml")
    classes = {**public["classes"], **more["classes"]}
    functions = {api: other.rpartition(".")[2] for api, other in {**public["apis"], **more["mindspore"]}.items()}
    # Of one name in several places the function counts.
    in_order = sorted(functions, key=lambda api: api.startswith("Functional."))
    return Tables(
        apis=public["apis"],
        mindspore=more["mindspore"],
        primitives=more["primitives"],
        functions={_joined(api.partition(".")[2]): functions[api] for api in in_order},
        arguments=more["arguments"],
        synonyms={_joined(word): _joined(operation) for word, operation in more["synonyms"].items()},
        families={_joined(word): _joined(family) for family, words in more["families"].items() for word in words},
        groups={_joined(operation): _parts(text) for operation, text in more["groups"].items()},
        classes={ours.lower(): theirs.lower() for ours, theirs in classes.items()},
    )


def _joined(name: str) -> str:
    return name.replace("_", "")


def _read(name: str) -> dict[str, Any]:
    text = resources.files(__package__ or "msprobe_ms.comparison.pairing").joinpath(name).read_text(encoding="utf-8")
    return yaml.load(text, Loader=FASTEST_LOADER)  # noqa: S506 - safe, whichever of the two it is


def _parts(text: str) -> tuple[Part, ...]:
    return tuple(Part(_joined(word.rstrip("?")), word.endswith("?")) for word in text.split())


def layer_kind(class_name: str) -> str:
    """Return one word in lower case for a layer class of either framework: ``Dense`` and ``Linear`` are ``linear``.

    >>> layer_kind("Dense"), layer_kind("Linear"), layer_kind("LayerNorm")
    ('linear', 'linear', 'layernorm')
    """
    name = class_name.lower()
    return tables().classes.get(name, name)


def operation_of(parsed: EntryName, *, mindspore: bool) -> str:
    """Return one word for what an API does, the same for both frameworks; ``mindspore``: the entry is MindSpore's.

    >>> from msprobe_ms.dump.names import parse_entry
    >>> operation_of(parse_entry("Primitive.fc.MatMul.0.forward"), mindspore=True)
    'matmul'
    >>> operation_of(parse_entry("Tensor.__truediv__.0.forward"), mindspore=False)
    'div'
    """
    return _operation(parsed.prefix, parsed.name, mindspore)


@lru_cache(maxsize=65536)
def _operation(prefix: str, name: str, mindspore: bool) -> str:
    known = tables()
    if prefix == PRIMITIVE:
        name = _of_primitive(name.rpartition(".")[2], known)
    elif mindspore:
        api = f"{prefix}.{name}"
        name = known.mindspore.get(api) or known.apis.get(api, api).partition(".")[2]
    return _plain(name, known)


def _of_primitive(class_name: str, known: Tables) -> str:
    for name in (class_name, _FORM.sub("", class_name)):
        if name in known.primitives:
            return known.primitives[name]
    function = _FORM.sub("", class_name).lower()
    return known.functions.get(function, function)


def _plain(name: str, known: Tables) -> str:
    """Without the spelling of operators (``__add__``), of calls in place (``add_``, ``__iadd__``) and other affixes."""
    word = _joined(_AFFIXES.sub("", name.strip("_"))) or name
    return known.synonyms.get(word, word)


def family_of(operation: str) -> str:
    """Return the family of an operation, itself where it has none: ``permute`` → ``transpose``."""
    return tables().families.get(operation, operation)


def argument_order(parsed: EntryName) -> list[int]:
    """Return the places of a primitive's tensors in the order of PyTorch's function; [] where it is the same."""
    return tables().arguments.get(parsed.name.rpartition(".")[2], []) if parsed.prefix == PRIMITIVE else []
