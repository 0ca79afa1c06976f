"""What is a message, and what is refused before anything of it is believed."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from msprobe_ms.remote.messages import Call, End, MessageError, Welcome, from_client, from_server, text_of

CALL = {"kind": "call", "number": 1, "name": "step0.Functional.relu.0", "framework": "pytorch", "entries": {},
        "tensors": [{"dtype": "float32", "shape": [2, 3]}]}  # fmt: skip


def test_messages_come_as_they_went() -> None:
    leaf = {"Max": math.nan, "Min": -math.inf, "value": "\ud800", "name": "é\n"}
    call = Call.model_validate({**CALL, "entries": {"Functional.relu.0.forward": {"input_args": [leaf]}}})
    read = from_client(text_of(call))
    assert isinstance(read, Call) and repr(read) == repr(call) and read.size == 24
    end = End.model_validate({"count": 3, "coverage": {"steps": 2, "calls": {"Functional.relu": (4, 1)}}})
    assert from_client(text_of(end)) == end
    assert from_server(text_of(Welcome(received=4))) == Welcome(received=4)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"\x80\x04\x95cos\nsystem\n", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"a":' * 100 + b"1" + b"}" * 100, "levels"),
        (b'{"kind": "hello", "more": [' + b"0," * 500_000 + b"0]}", "values"),
        (b"[1]", "message"),
        (b'{"kind": "pickle"}', "pickle"),
        (b'{"kind": "hello", "client": "../../etc", "rank": 0}', "client"),
        (b'{"kind": "hello", "client": "rank0", "rank": -1}', "rank"),
        (b'{"kind": "hello", "client": "rank0", "rank": true}', "rank"),
        (b'{"kind": "hello", "client": "rank0", "rank": 0, "further": 1}', "further"),
        (b'{"kind": "end", "count": 1e400}', "count"),
        (b'{"kind": "end", "count": ' + b"9" * 10_000 + b"}", "no JSON|count"),
    ],
)
def test_what_is_no_message_is_refused(text: bytes, why: str) -> None:
    with pytest.raises(MessageError, match=why):
        from_client(text)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"number": 0}, "number"),
        ({"number": 1 << 60}, "number"),
        ({"tensors": [{"dtype": "object", "shape": [1]}]}, "dtype"),
        ({"tensors": [{"dtype": "V8", "shape": [1]}]}, "dtype"),
        ({"tensors": [{"dtype": "float32", "shape": [1 << 60]}]}, "bytes"),
        ({"tensors": [{"dtype": "float32", "shape": [1 << 59, 1 << 59]}]}, "bytes"),
        ({"tensors": [{"dtype": "float32", "shape": [-1]}]}, "shape"),
        ({"tensors": [{"dtype": "float32", "shape": [1] * 33}]}, "shape"),
        ({"tensors": [{"dtype": "float64", "shape": [1 << 30]}] * 3}, "bytes"),
        ({"tensors": [{"dtype": "int8", "shape": []}] * 5000}, "tensors"),
        ({"entries": {f"e{n}": {} for n in range(20)}}, "entries"),
        ({"name": ""}, "name"),
    ],
)
def test_calls_beyond_the_bounds_are_refused(change: dict[str, Any], why: str) -> None:
    with pytest.raises(MessageError, match=why):
        from_client(json.dumps({**CALL, **change}).encode())
