"""What two machines say to each other: each message is one JSON object, and every field of it has a bound."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from msprobe_ms.arrays.npy import item_size
from msprobe_ms.support.translation import tr

#: The version of the protocol.
PROTOCOL = 1
#: Bytes of a message without its tensors; levels and values in it; numbers that a client may count to.
LONGEST, DEEPEST, _MOST_VALUES, _LARGEST_NUMBER = 4 << 20, 64, 400_000, 1 << 48
#: Tensors of one call, dimensions of one, bytes of all.
_MOST_TENSORS, _MOST_DIMENSIONS, LARGEST_CALL = 4096, 32, 16 << 30

Number = Annotated[int, Field(ge=1, le=_LARGEST_NUMBER)]
Count = Annotated[int, Field(ge=0, le=_LARGEST_NUMBER)]
Name = Annotated[str, Field(min_length=1, max_length=20_000)]
Short = Annotated[str, Field(max_length=2000)]


class MessageError(Exception):
    """What came is no message of the protocol, or beyond its bounds; the text says why."""


class _Message(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Hello(_Message):
    """Client: who it is. ``client`` is a name that no other has, and stays the same when it connects again."""

    kind: Literal["hello"] = "hello"
    protocol: Annotated[int, Field(ge=1, le=1000)] = PROTOCOL
    client: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$")]
    rank: Annotated[int, Field(ge=0, le=1_000_000)]
    device: Annotated[str, Field(max_length=40)] = ""


class Tensor(_Message):
    """A tensor whose bytes follow the message: in C order, little-endian. ``dtype`` in numpy's spelling."""

    dtype: Annotated[str, Field(max_length=40)]
    shape: Annotated[list[Annotated[int, Field(ge=0, le=1 << 60)]], Field(max_length=_MOST_DIMENSIONS)]

    @model_validator(mode="after")
    def _has_a_size(self) -> Tensor:
        if item_size(self.dtype) is None:
            raise ValueError(tr("dtype {dtype} is none that is sent", dtype=repr(self.dtype)))
        if self.size > LARGEST_CALL:
            raise ValueError(tr("{size} bytes; accepted are {largest_call}", size=self.size, largest_call=LARGEST_CALL))
        return self

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return math.prod(self.shape) * (item_size(self.dtype) or 0)


class Call(_Message):
    """Client: a recorded call. ``entries`` are those of its dump.json, forward and backward; where they name the file
    of a tensor stands its place in ``tensors``, "0" for the first."""

    kind: Literal["call"] = "call"
    number: Number
    name: Name
    framework: Annotated[str, Field(max_length=40)]
    entries: dict[Name, Any] = Field(max_length=16)
    tensors: list[Tensor] = Field(max_length=_MOST_TENSORS)

    @model_validator(mode="after")
    def _fits(self) -> Call:
        if self.size > LARGEST_CALL:
            raise ValueError(tr("{size} bytes; accepted are {largest_call}", size=self.size, largest_call=LARGEST_CALL))
        return self

    @property
    def size(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.size for tensor in self.tensors)


class Dropped(_Message):
    """Client: what is not sent under a number, and why."""

    kind: Literal["dropped"] = "dropped"
    number: Number
    name: Name
    reason: Short


class Coverage(_Message):
    """What the calls are a sample of, as `Progress` has it."""

    steps: Count = 0
    sampled: Count = 0
    calls: dict[Name, tuple[Count, Count]] = Field(default_factory=dict, max_length=100_000)
    unchecked: dict[Name, Short] = Field(default_factory=dict, max_length=100_000)

    @model_validator(mode="before")
    @classmethod
    def _pairs(cls, content: Any) -> Any:
        """JSON has no tuples."""
        if isinstance(content, dict) and isinstance(content.get("calls"), dict):
            calls = {key: tuple(pair) if isinstance(pair, list) else pair for key, pair in content["calls"].items()}
            return {**content, "calls": calls}
        return content


class End(_Message):
    """Client: nothing comes after number ``count``. ``killed``: the training did not come to its end."""

    kind: Literal["end"] = "end"
    count: Count
    killed: bool = False
    coverage: Coverage = Field(default_factory=Coverage)


class Welcome(_Message):
    """Server: all numbers up to ``received`` are there and need not be sent again."""

    kind: Literal["welcome"] = "welcome"
    received: Count


class Received(_Message):
    """Server: all numbers up to this are kept, and each will have a row."""

    kind: Literal["received"] = "received"
    number: Count


class Refused(_Message):
    """Server: why it closes the connection. ``later``: it may be otherwise after a while."""

    kind: Literal["refused"] = "refused"
    reason: Short
    later: bool = False


class Ended(_Message):
    """Server, to `End`: calls that are judged so far, results among them that are wrong, numbers that never came."""

    kind: Literal["ended"] = "ended"
    judged: Count
    wrong: Count = 0
    missing: Count = 0


FromClient = Hello | Call | Dropped | End
FromServer = Welcome | Received | Refused | Ended
_CLIENT: TypeAdapter[FromClient] = TypeAdapter(Annotated[FromClient, Field(discriminator="kind")])
_SERVER: TypeAdapter[FromServer] = TypeAdapter(Annotated[FromServer, Field(discriminator="kind")])


def from_client(text: bytes) -> FromClient:
    """Read a message of a client. Raises MessageError."""
    return _validated(_CLIENT, text)


def from_server(text: bytes) -> FromServer:
    """Read a message of a server. Raises MessageError."""
    return _validated(_SERVER, text)


def text_of(message: _Message) -> bytes:
    """Return a message as JSON. What is recorded may hold NaN, which the format allows, and halves of characters."""
    return json.dumps(message.model_dump(), separators=(",", ":")).encode("ascii")


def _validated(adapter: TypeAdapter[Any], text: bytes) -> Any:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MessageError(tr("no JSON: {error}", error=str(error)[:200])) from None
    _check_size(content)
    try:
        return adapter.validate_python(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))[:200]
        raise MessageError(tr("{place}: {wrong}", place=place or tr("the message"), wrong=first["msg"][:200])) from None


def _check_size(content: Any) -> None:
    """Check how deep a message is nested, and how many values it has."""
    level, depth, values = [content], 0, 0
    while level:
        depth += 1
        values += len(level)
        if depth > DEEPEST or values > _MOST_VALUES:
            raise MessageError(
                tr("more than {deepest} levels or {most_values} values", deepest=DEEPEST, most_values=_MOST_VALUES)
            )
        level = [inner for each in level for inner in _members(each)]


def _members(value: Any) -> Any:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()
