"""The only grammar of entry, item and file names: parse and format.

An *entry* is one recorded call (a key of dump.json's ``data``), an *item* one value of it, a *data name* the file that
holds a tensor. Modules put direction before index, APIs after it::

    Cell.net.fc1.Dense.forward.0          Functional.relu.0.forward
    Cell.net.fc1.Dense.backward.0         Functional.relu.0.backward
    Cell.net.fc1.Dense.parameters_grad.0  Primitive.matmul.MatMul.3.forward
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from sys import intern

from msprobe_ms.dump.dialects import MODULE_PREFIXES
from msprobe_ms.support.translation import tr, tr_count

FORWARD = "forward"
BACKWARD = "backward"
PARAMETERS = "parameters"
PARAMETERS_GRAD = "parameters_grad"
DEBUG = "debug"

#: Name of the saved value that gradients are computed of; recorded at other levels than debug, too.
LOSS = "loss"

#: A further key of a forward entry, true where the call only recomputed in backward what an earlier one had computed.
RECOMPUTE = "recompute"

#: A further key of a forward entry: what an operator object was made with, by the names of its constructor's arguments.
ATTRIBUTES = "attributes"

#: A further key of a tensor's leaf, true where the kernel has room for the result and never writes it.
UNWRITTEN = "unwritten"

#: Key of a tensor's leaf: the text of its sketch (docs/format.md, "Sketches").
SKETCH = "Sketch"

#: Key of a tensor's leaf: elements between neighbours along each dimension.
STRIDE = "stride"

#: Prefix of entries that hold what a compiled graph keeps: its parameters and inputs, after it ran.
PARAMETER = "Parameter"

#: A further key of a kernel's entry in a compiled graph: the path of its operator, from the outermost Cell in.
SCOPE = "scope"

#: A further key of dump.json, true where it was made from the journal of a process that was killed.
RECOVERED = "recovered"

#: A further key of dump.json: in words, what the recording could not hold; not there where it holds all.
INCOMPLETE = "incomplete"

#: How the names of folders begin that hold what is not this process's own: the dump of an earlier run, and that of
#: another process which wrote at the same time.
EARLIER, BESIDE = "earlier", "beside"

#: Prefix of entries that hold what an optimizer made of a parameter; their name is its path in the model.
OPTIMIZER = "Optimizer"

#: Between the paths of several modules that stand for one of the other dump: ``attention.q + k + v``.
JOINED = " + "

#: Parts and characters of a name that is read. Real names have some dozens of parts, and no model whose modules lie in
#: each other so deep can be called; what walks a name from the inside out takes the square of their number.
MOST_PARTS, LONGEST_NAME = 1_000, 10_000
#: What ``is_name`` accepts, in words.
NAMES_ACCEPTED = tr(
    "accepted are names of at most {parts} parts and {characters} characters",
    parts=MOST_PARTS,
    characters=LONGEST_NAME,
)

_MODULE = re.compile(
    rf"({'|'.join(MODULE_PREFIXES)})\.(?:(.*)\.)?([^.]+)\.(forward|backward|parameters_grad)(?:\.(\d{{1,18}}))?"
)
_API = re.compile(r"([^.]+)\.(.+)\.(\d{1,18})\.(forward|backward)")
#: Digits of a number in these names.
_MOST_DIGITS = 18
_DEBUG = re.compile(r"(.+)\.(\d{1,18})\.debug")

#: Longest file name common file systems take, in bytes.
_LONGEST_FILE_NAME = 255
_UNSAFE_IN_FILES = re.compile(r"[^\w.@+=,()\[\] -]", re.UNICODE)


def is_name(text: str) -> bool:
    """Return whether a text is short enough to be the name of an entry, a module or an item.

    >>> is_name("Cell.net.fc1.Dense.forward.0"), is_name("Cell" + ".a" * 3000 + ".Dense.forward.0")
    (True, False)
    """
    return len(text) < MOST_PARTS or (len(text) <= LONGEST_NAME and text.count(".") < MOST_PARTS)


@dataclass(frozen=True, slots=True)
class EntryName:
    """One entry name taken apart.

    ``prefix`` is ``Cell``, ``Module``, ``Functional``…; ``name`` the dotted module name or the API name (for a
    primitive ``{attribute}.{Class}``); ``class_name`` the module's class ("" for APIs); ``index`` the call within the
    step, ``None`` where an old dump left it out.
    """

    prefix: str
    name: str
    class_name: str
    direction: str
    index: int | None
    #: Whether it is a module's and not an API's; millions of entries are asked for it, many times each.
    is_module: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_module", self.prefix in MODULE_PREFIXES)

    @property
    def is_root(self) -> bool:
        """Whether it is the model itself; one of several models looks like any module."""
        return self.is_module and not self.name

    def __str__(self) -> str:
        index = "" if self.index is None else f".{self.index}"
        if self.is_module:
            name = f"{self.name}." if self.name else ""
            return f"{self.prefix}.{name}{self.class_name}.{self.direction}{index}"
        if self.direction == DEBUG:
            return f"{self.name}{index}.{DEBUG}"
        return f"{self.prefix}.{self.name}{index}.{self.direction}"

    def in_direction(self, direction: str) -> EntryName:
        """Return the same call's entry in another direction: ``forward``, ``backward`` or ``parameters_grad``."""
        return replace(self, direction=direction)


@lru_cache(maxsize=4096)
def _api_of(head: str, direction: str) -> tuple[str, str] | None:
    """Prefix and name of an API, of what stands before the number of a call, as ``_API`` tells them; None of others."""
    prefix, _, name = head.partition(".")
    if direction not in (FORWARD, BACKWARD) or not (prefix and name) or "\n" in name or prefix in MODULE_PREFIXES:
        return None
    return intern(prefix), intern(name)


@lru_cache(maxsize=65536)
def parse_entry(text: str) -> EntryName | None:
    """Take an entry name apart; ``None`` when it follows neither grammar. Its texts are shared with those of others.

    >>> parse_entry("Cell.net.fc1.Dense.forward.0")
    EntryName(prefix='Cell', name='net.fc1', class_name='Dense', direction='forward', index=0)
    >>> parse_entry("Functional.relu.2.backward").index
    2
    """
    stem, _, direction = text.rpartition(".")
    head, _, digits = stem.rpartition(".")
    if (known := _api_of(head, direction)) is not None and len(digits) <= _MOST_DIGITS and digits.isdecimal():
        return EntryName(*known, "", intern(direction), int(digits))
    if found := _MODULE.fullmatch(text):
        prefix, name, class_name, direction, index = found.groups()
        if index is None and direction != PARAMETERS_GRAD:
            return None
        number = None if index is None else int(index)
        return EntryName(intern(prefix), intern(name or ""), intern(class_name), intern(direction), number)
    if found := _API.fullmatch(text):
        prefix, name, index, direction = found.groups()
        if prefix in MODULE_PREFIXES:
            return None
        return EntryName(intern(prefix), intern(name), "", intern(direction), int(index))
    if found := _DEBUG.fullmatch(text):
        return EntryName("", found[1], "", DEBUG, int(found[2]))
    return None


def beginnings(name: str) -> Iterator[str]:
    """Yield an item's dotted name and all that it begins with, the longest first: its entry is one of them."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def module_entry(prefix: str, name: str, class_name: str, direction: str, index: int) -> str:
    """Format a module's entry: ``Cell.{name}.{Class}.{direction}.{index}``."""
    return f"{prefix}.{name}.{class_name}.{direction}.{index}" if name else f"{prefix}.{class_name}.{direction}.{index}"


def api_entry(prefix: str, name: str, index: int, direction: str) -> str:
    """Format an API's entry: ``{prefix}.{api}.{index}.{direction}``."""
    return f"{prefix}.{name}.{index}.{direction}"


def data_name(entry: str, category: str, path: tuple[str, ...], suffix: str) -> str:
    """Format the file name of a tensor: ``{entry}.{category}.{path}{suffix}``; ``category`` "" for parameter gradients.

    Characters a file system may refuse become ``_``; a name beyond 255 bytes keeps its head and gets a digest of the
    whole, so that no two tensors share a file and none is skipped. So does one whose path its dots do not tell, as a
    key of the script's is empty or holds dots itself.
    """
    whole = ".".join(part for part in (entry, category, *path) if part)
    safe = _UNSAFE_IN_FILES.sub("_", whole)
    told = all(part and "." not in part for part in path)
    if not told:
        whole = "\0".join((whole, *path))
    if not told or safe != whole or len(safe.encode()) + len(suffix) > _LONGEST_FILE_NAME:
        digest = hashlib.blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        room = _LONGEST_FILE_NAME - len(suffix) - len(digest) - 1
        safe = safe.encode()[:room].decode("utf-8", "ignore") + "." + digest
    return safe + suffix


def counted_entries(count: int) -> str:
    """Say how many entries there are.

    >>> counted_entries(1), counted_entries(20)
    ('1 entry', '20 entries')
    """
    return tr_count("{count} entry", "{count} entries", count)


def is_fused(path: str) -> bool:
    """Whether this is the path of several modules, whose entries were joined."""
    return JOINED in path


def parts_named(path: str) -> set[str]:
    """Return what the modules of such a path may be called, from wherever in it they begin.

    >>> sorted(parts_named("attention.q + k"))
    ['attention.k', 'attention.q', 'k']
    """
    first, *others = path.split(JOINED)
    above = [first[: place + 1] for place, character in enumerate(first) if character == "."]
    return {first, *others, *(start + part for start in above for part in others)}


def is_loss(parsed: EntryName | None) -> bool:
    """Whether an entry holds what gradients are computed of, as it is recorded beside calls.

    >>> is_loss(parse_entry("loss.0.debug"))
    True
    """
    return parsed is not None and parsed.direction == DEBUG and parsed.name == LOSS


def is_update(parsed: EntryName | None) -> bool:
    """Whether an entry is what an optimizer made of one parameter."""
    return parsed is not None and parsed.prefix == OPTIMIZER and parsed.direction == FORWARD


def is_of_training(parsed: EntryName | None) -> bool:
    """Whether an inference would not have this entry: a gradient, an update, the loss.

    >>> [is_of_training(parse_entry(f"Functional.relu.0.{direction}")) for direction in (FORWARD, BACKWARD)]
    [False, True]
    """
    if parsed is None:
        return False
    return parsed.direction in (BACKWARD, PARAMETERS_GRAD) or is_loss(parsed) or is_update(parsed)


def is_function(parsed: EntryName | None) -> bool:
    """Whether an entry is an API's, no module's and no saved value's."""
    return parsed is not None and not parsed.is_module and parsed.direction != DEBUG
