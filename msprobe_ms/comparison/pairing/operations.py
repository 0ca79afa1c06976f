"""Name API calls and layer classes of MindSpore and PyTorch alike, by built-in tables of what is the same.

The words are PyTorch's names of functions, without underscores. ``mindspore_pytorch.yaml`` is the public table of
pairs, ``operations.yaml`` what it leaves open: primitives, operators, families, and what several calls of one side are
in one of the other. A call pairs by its name, by what it does, by its family; a rule of the user comes before all.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib import resources
from typing import Any

import yaml

from msprobe_ms.comparison.pairing.rules.api import ApiRule
from msprobe_ms.dump.columns import ItemSlice
from msprobe_ms.dump.dialects import MINDSPORE, PRIMITIVE, apis_of
from msprobe_ms.dump.model import Dump, Entry
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


#: The three ways to call an API alike, from the narrowest to the widest.
NAME, OPERATION, FAMILY = range(3)


@dataclass(frozen=True, eq=False)
class Call:
    """An API's entry, its place among the calls of its scope, and its three names: name, operation, family."""

    entry: Entry
    place: int
    names: tuple[str, str, str]

    @cached_property
    def output_shape(self) -> object:
        """Shape of the first output tensor; None where there is none."""
        items = self.entry.items
        if not isinstance(items, ItemSlice):
            return next((item.shape for item in items if item.state == "output" and item.kind == "tensor"), None)
        # Of a dump that was read no item need be made to be asked this.
        table, numbers = items.table, range(items.start, items.stop)
        sorts = (table.sort(number) for number in numbers if table.state(number) == "output")
        return next((shape for kind, _, _, shape, _ in sorts if kind == "tensor"), None)

    @cached_property
    def output_statistics(self) -> Hashable:
        return output_statistics(self.entry)

    def means(self, word: str) -> bool:
        return word in self.names[OPERATION:]


def output_statistics(entry: Entry) -> Hashable:
    """Return rounded statistics, or checksums, of the output tensors: they identify a call. None without any."""
    tensors = [item for item in entry.items if item.state == "output" and item.kind == "tensor"]
    statistics = [
        item.md5 or f"{item.maximum:.2e} {item.minimum:.2e} {item.norm:.2e}"
        for item in tensors
        if item.md5 or all(isinstance(value, float) for value in (item.maximum, item.minimum, item.norm))
    ]
    return tuple(statistics) or None


class ApiNames:
    """Names of the API calls of one dump; ``rules`` by ``Prefix.api`` of its side."""

    def __init__(self, dump: Dump, rules: Mapping[str, ApiRule]) -> None:
        self.mindspore = apis_of(dump.framework) == MINDSPORE.apis
        self.rules = rules

    def of(self, entry: Entry) -> tuple[str, str, str]:
        """Return name, operation and family of the entry of an API call."""
        parsed = entry.parsed
        assert parsed is not None
        if rule := self.rule(entry):
            return rule.word, rule.word, rule.word
        operation = operation_of(parsed, mindspore=self.mindspore)
        return parsed.name, operation, family_of(operation)

    def rule(self, entry: Entry) -> ApiRule | None:
        """Return the user's rule about an API, if any.

        A primitive goes by ``Primitive.matmul.MatMul`` and by ``Primitive.matmul``.
        """
        parsed = entry.parsed
        if not self.rules or parsed is None or parsed.is_module:
            return None
        names = f"{parsed.prefix}.{parsed.name}", f"{parsed.prefix}.{parsed.name.partition('.')[0]}"
        return next((self.rules[name] for name in names if name in self.rules), None)
