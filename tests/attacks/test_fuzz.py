"""Every file that a console command reads, damaged at random or made by its grammar with something wrong (`grammars`):
one of its own errors at most, in bounds (`attempt`).

``make fuzz`` runs many examples of each; what it finds becomes an attack of its own in `attacks`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thorough import sampled

from tests.attacks.attacks import ESCAPES
from tests.attacks.attempt import attempt
from tests.attacks.grammars import GRAMMARS
from tests.attacks.readers import BY_KIND, READERS, Reader, emptied

#: What readers of such files stumble over.
TOKENS = (
    b"", b"\0", b"\xff" * 8, b"\x7f" * 4, b"[", b"]", b"{", b"}", b"(", b")", b'"', b"'", b",", b":", b"\n", b"\r\n",
    b".", b"-", b"-1", b"0", b"9" * 20, b"9" * 5000, b"1e999", b"NaN", b"null", b"true", b"\\ud800", b"\\u0000",
    b"../", b"/", b"&a ", b"*a", b"<<: ", b"!!python/name:os.system ", b"? ", b"- ", b"---\n", b"%", b"\xed\xa0\x80",
    b"\xef\xbb\xbf", b"PK\x03\x04", b"R.", b"(" * 200, b"[" * 2000, ESCAPES.encode(),
)  # fmt: skip

#: Values that stand where others are expected.
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20),
    st.sampled_from([10**30, -(10**400), 2**63, ESCAPES, "", "-1", "../a.npy", "torch.Size", "slice", "ellipsis"]),
    st.lists(st.integers(-1, 2**64), max_size=4), st.dictionaries(st.text(max_size=5), st.none(), max_size=2),
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, sound: bytes) -> bytes:
    """``sound`` with up to six places overwritten, cut out, doubled, or with something put in."""
    found = bytearray(sound)
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, len(found)))
        length = draw(st.one_of(st.integers(0, 8), st.integers(0, max(8, len(found)))))
        kind = draw(st.sampled_from(("put", "over", "cut", "double", "bit")))
        if kind == "put":
            found[place:place] = draw(st.one_of(st.sampled_from(TOKENS), st.binary(max_size=8)))
        elif kind == "over":
            found[place : place + length] = draw(st.one_of(st.sampled_from(TOKENS), st.binary(max_size=8)))
        elif kind == "cut":
            del found[place : place + length]
        elif kind == "double":
            found[place:place] = found[place : place + length]
        elif place < len(found):
            found[place] ^= 1 << draw(st.integers(0, 7))
    return bytes(found)


@st.composite
def reworked(draw: st.DrawFn, sound: bytes) -> bytes:
    """A JSON document with some of its values, and keys, changed into others."""
    document = json.loads(sound)
    for _ in range(draw(st.integers(1, 4))):
        places = list(_places(document))
        if not places:
            break
        change = draw(st.sampled_from(places))
        change(draw)
    return json.dumps(document).encode()


def _places(value: Any) -> Iterator[Callable[[st.DrawFn], object]]:
    """Ways to change a document: each replaces, removes, doubles or renames one of its values."""
    if isinstance(value, dict):
        for key in value:
            yield lambda draw, key=key: _change_member(draw, value, key)
        for each in value.values():
            yield from _places(each)
    elif isinstance(value, list):
        for place in range(len(value)):
            yield lambda draw, place=place: value.__setitem__(place, draw(VALUES))
        for each in value:
            yield from _places(each)


def _change_member(draw: st.DrawFn, value: dict[str, Any], key: str) -> None:
    kind = draw(st.sampled_from(("value", "remove", "rename", "nest")))
    if kind == "value":
        value[key] = draw(VALUES)
    elif kind == "nest":
        value[key] = {key: [value[key]], "type": draw(VALUES)}
    else:
        content = value.pop(key)
        if kind == "rename":
            names = st.sampled_from([ESCAPES, "Cell.a.B.forward.²", "a.0.debug", "Functional.a.0.forward"])
            value[draw(st.one_of(st.text(max_size=30), names))] = content


def contents(sound: bytes) -> st.SearchStrategy[bytes]:
    try:
        is_document = isinstance(json.loads(sound), (dict, list))
    except ValueError:
        is_document = False
    return st.one_of(damaged(sound), reworked(sound)) if is_document else damaged(sound)


@pytest.mark.parametrize("reader", sampled(READERS, set(READERS[1::2]).__contains__), ids=lambda reader: reader.kind)
def test_damaged_at_random(reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = reader.lay(emptied(tmp_path / "laid"))
    never_broken(reader, contents(path.read_bytes()), tmp_path, monkeypatch)


@pytest.mark.parametrize("kind", GRAMMARS)
def test_made_by_the_grammar(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    never_broken(BY_KIND[kind], GRAMMARS[kind](), tmp_path, monkeypatch)


def never_broken(
    reader: Reader, drawn: st.SearchStrategy[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let commands read what is drawn in the place of a file."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    folder = emptied(tmp_path / "laid")
    path = reader.lay(folder)
    commands = len(reader.reads(folder))
    writes = any(command[0] == "recover" for command in reader.reads(folder))

    @settings(suppress_health_check=list(HealthCheck))
    @given(drawn, st.integers(0, commands - 1))
    def reads(content: bytes, number: int) -> None:
        nonlocal path
        if writes:  # beside what it reads
            path = reader.lay(emptied(folder))
        else:
            shutil.rmtree(folder / "out", ignore_errors=True)
        path.write_bytes(content)
        attempt(reader.reads(folder)[number])
        assert not any((tmp_path / "here").iterdir())
        assert {path.name for path in tmp_path.iterdir()} == {"here", "laid"}

    reads()
