"""What ``msprobe prove`` found, shown in a page that is there already; before that, the command that finds it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from shlex import quote
from typing import Any, TypedDict

from msprobe_ms.comparison.model import Outcome
from msprobe_ms.comparison.reporting.files import writing
from msprobe_ms.comparison.reporting.terminal import is_provable
from msprobe_ms.page.template import INDEX, escaped, index_text
from msprobe_ms.support.files import open_regular
from msprobe_ms.support.translation import tr

#: What stands around the proofs in a page's header; no text of a dump holds it, as all of them are escaped.
_PLACE = b'<div id="proofs">', b"</div>"
#: Largest page that is changed, in bytes; the largest index and most proofs of one.
_LARGEST, _LARGEST_INDEX, _MOST = 256 << 20, 64 << 20, 50
#: Longest sentence that is shown whole, in characters.
_SENTENCE = 2_000


class TellingProof(TypedDict):
    """A proof as pages tell it.

    ``calls``    entries of the target that it is about; the first tells it from other proofs
    ``answer``   ``right``, ``wrong`` or ``undecided``
    ``details``  notes and experiments, a sentence each
    """

    calls: list[str]
    answer: str
    sentence: str
    details: list[str]


def prove_command(outcome: Outcome, summary: str = "", *, stacks: bool = True) -> str:
    """Return the command that proves a call, to which ``--node NAME`` is added; "" where none does.

    ``summary``: the file beside the page that names the dumps; without one the command names them.
    """
    if summary:
        return f"msprobe prove {quote(summary)}"
    sides = [str(dump.path) for dump in (outcome.target, outcome.golden)]
    if not stacks or not all(map(str.isprintable, sides)):
        return ""
    return f"msprobe prove -tp {quote(sides[0])} -gp {quote(sides[1])}"


def asking_html(outcome: Outcome, summary: str = "", *, stacks: bool = True) -> str:
    """Return the place of proofs in a header: as yet, how to prove the first origin. All else as ``prove_command``."""
    origin = next(iter(outcome.comparison.origins), None)
    command = prove_command(outcome, summary, stacks=stacks)
    if not command or origin is None or not is_provable(origin, outcome.target) or not origin.target.isprintable():
        return _placed("")
    # A summary tells the first origin itself.
    whole = escaped(command if summary else f"{command} --node {quote(origin.target)}", _SENTENCE)
    folder = tr("Which side is wrong, and why (run this in the folder of this page):")
    asked = escaped(folder if summary else tr("Which side is wrong, and why:"))
    return _placed(f'<p class="reason">{asked} <code>{whole}</code></p>')


def add_proof(page: Path, proof: TellingProof) -> bool:
    """Show a proof in a page of a comparison, in place of an earlier one of the same call; return whether it is one.

    :raises OSError: the page cannot be read
    :raises UsageError: it cannot be written
    """
    with open_regular(page) as file:
        if os.fstat(file.fileno()).st_size > _LARGEST:
            return False
        content = file.read()
    place = _between(content, *_PLACE)
    told = _between(content, *INDEX) if place is not None else None
    index = _read(content[told]) if told is not None else None
    if place is None or told is None or index is None or told.start < place.stop:
        return False
    others = (each for each in _sound(index.get("proofs")) if each["calls"][:1] != proof["calls"][:1])
    index["proofs"] = [proof, *others][:_MOST]
    with writing(page) as changed:
        changed.write(content[: place.start])
        changed.write("".join(map(_html, index["proofs"])).encode())
        changed.write(content[place.stop : told.start])
        changed.write(index_text(index).encode("ascii"))
        changed.write(content[told.stop :])
    return True


def _placed(html: str) -> str:
    begin, end = (each.decode() for each in _PLACE)
    return f"{begin}{html}{end}"


def _html(proof: TellingProof) -> str:
    name = next(iter(proof["calls"]), "")
    details = "".join(f"<li>{escaped(each, _SENTENCE)}</li>" for each in proof["details"])
    found = escaped(tr("how that was found"))
    folded = f"<details><summary>{found}</summary><ul>{details}</ul></details>" if details else ""
    return (
        f'<p class="reason"><strong>{escaped(proof["answer"].upper())}</strong> <bdi>{escaped(name)}</bdi>: '
        f"{escaped(proof['sentence'], _SENTENCE)}</p>{folded}"
    )


def _between(content: bytes, begin: bytes, end: bytes) -> slice | None:
    """What stands between two texts, the first of their kind."""
    start = content.find(begin)
    stop = content.find(end, start)
    return slice(start + len(begin), stop) if 0 <= start < stop else None


def _read(text: bytes) -> dict[str, Any] | None:
    """The index of a page of a comparison; None where it is none."""
    try:
        index: Any = json.loads(text) if len(text) <= _LARGEST_INDEX else None
        if not isinstance(index, dict) or index.get("kind") != "comparison":
            return None
        index_text(index)  # what is not finite there cannot be written again
    except (ValueError, RecursionError):
        return None
    return index


def _sound(proofs: object) -> Iterator[TellingProof]:
    """Those of what a page holds that are proofs."""
    for each in proofs if isinstance(proofs, list) else ():
        if isinstance(each, dict) and each.keys() == TellingProof.__annotations__.keys():
            lists = each["calls"], each["details"]
            texts = each["answer"], each["sentence"]
            if all(isinstance(items, list) for items in lists) and _are_texts([*texts, *lists[0], *lists[1]]):
                yield TellingProof(calls=lists[0], answer=texts[0], sentence=texts[1], details=lists[1])


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)
