"""The skeleton of a page: what a browser may do with it, and where its parts stand."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import BinaryIO

from msprobe_ms.page.columns import Columns
from msprobe_ms.support.text import printable
from msprobe_ms.support.translation import language, texts_in, translated

#: The page loads nothing, runs its own script alone, and no text becomes markup.
_POLICY = (
    "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
#: Longest text of a dump that is shown whole in the static part, in characters.
_LONGEST = 300
#: Language of messages → as HTML names it.
_LANGUAGE_TAGS = {"en": "en", "zh": "zh-CN"}
#: What stands around the index in a page.
INDEX = b'<script type="application/json" id="index">', b"</script>\n"


def write_page(
    file: BinaryIO, *, title: str, header: str, provenance: str, index: Mapping[str, object], columns: Columns
) -> None:
    """Write a page.

    ``title`` is text; ``header`` and ``provenance`` are HTML whose texts went through `escaped`. ``index`` is what the
    script reads first; the description of the columns is added to it.
    """
    _write_head(file, title, "report")
    file.write(f'<main id="report">\n{header}\n<div id="app"></div>\n{provenance}\n</main>\n'.encode())
    begin, end = INDEX
    if texts := texts_in("page"):
        file.write(b'<script type="application/json" id="texts">' + index_text(texts).encode("ascii") + end)
    file.write(begin + index_text({**index, "columns": columns.index}).encode("ascii") + end)
    for element in columns.elements():
        file.write(element.encode("ascii"))
    _write_end(file, "report")


def index_text(index: Mapping[str, object]) -> str:
    """Return an index as it stands in a page, where nothing in it ends its element.

    :raises ValueError: it holds a number that is not finite
    """
    text = json.dumps(index, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def write_static_page(file: BinaryIO, *, title: str, body: str, assets: str) -> None:
    """Write a page that reads without its script. ``body`` is HTML whose texts went through `escaped`; ``assets`` is
    the name of its style and, where it has one, its script."""
    _write_head(file, title, assets)
    file.write(f"<main>\n{body}\n</main>\n".encode())
    _write_end(file, assets)


def _write_head(file: BinaryIO, title: str, assets: str) -> None:
    """What a page may do, its title and its style, as far as the beginning of the body."""
    style = _asset(f"{assets}.css")
    policy = _POLICY.format(script=_digest(_asset(f"{assets}.js")), style=_digest(style))
    file.write(
        f'<!doctype html>\n<html lang="{_LANGUAGE_TAGS[language()]}"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n<style>{style}</style></head>\n<body>\n".encode()
    )


def _write_end(file: BinaryIO, assets: str) -> None:
    file.write(f"<script>{_asset(f'{assets}.js')}</script>\n</body></html>\n".encode())


def escaped(text: str, longest: int = _LONGEST) -> str:
    """Return text as HTML shows it, a message in the language of the user: nothing in it is markup, and what is not
    printable is shown as its escape."""
    text = translated(text)
    shown = printable(text if len(text) <= longest else f"{text[:longest]}…")
    return html.escape(shown, quote=True)


@cache
def _asset(name: str) -> str:
    file = resources.files(__package__) / name
    return file.read_text("utf-8") if file.is_file() or not name.endswith(".js") else ""


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
