"""Run the tutorial in a folder for temporary files and store what its cells print: ``python tools/tutorial.py``.

Needs MindSpore and PyTorch. No Jupyter: a cell is executed as it is, and prints to the output below it. Nothing that
differs between two machines belongs into a cell's output: ``tests/frameworks/test_tutorial.py`` compares it.
"""

from __future__ import annotations

import ast
import json
import os
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[1] / "docs" / "tutorial.ipynb"


def cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cells that hold code."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def printed(notebook: dict[str, Any]) -> list[str]:
    """Run all cells in the working directory, one after the other; returns what each printed."""
    names: dict[str, Any] = {"__name__": "__main__"}
    return [_run("".join(cell["source"]), f"<cell {number}>", names) for number, cell in enumerate(cells(notebook), 1)]


def _run(source: str, place: str, names: dict[str, Any]) -> str:
    """One cell; its last expression is shown, as a notebook does."""
    with redirect_stdout(StringIO()) as shown:
        tree = ast.parse(source)
        last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, place, "exec"), names)
        value = None if last is None else eval(compile(last, place, "eval"), names)
        if value is not None:
            print(repr(value))
    return shown.getvalue()


def main() -> None:
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        texts = printed(notebook)
    for number, (cell, text) in enumerate(zip(cells(notebook), texts, strict=True), 1):
        cell["execution_count"] = number
        stream = {"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}
        cell["outputs"] = [stream] if text else []
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"{NOTEBOOK}: {len(texts)} cells")


if __name__ == "__main__":
    main()
