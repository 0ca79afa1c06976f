"""A notebook as a page: its cells, and the outputs that the file holds; nothing is run."""

from __future__ import annotations

import json
from typing import Any


def as_markdown(text: str) -> str:
    """The text of an ``.ipynb`` file as Markdown: prose as it is, code and what it printed as blocks."""
    cells = json.loads(text)["cells"]
    return "\n\n".join(part for cell in cells for part in _parts(cell)) + "\n"


def _parts(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    return [_block("python", source), *filter(None, map(_printed, cell["outputs"]))]


def _printed(output: dict[str, Any]) -> str:
    text = output["text"] if output["output_type"] == "stream" else output.get("data", {}).get("text/plain", "")
    return _block("text", "".join(text)) if text else ""


def _block(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"
