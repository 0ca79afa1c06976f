"""The sources of the page's script: where they are, and how they are built."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from tests.browser.conftest import absent

WEB = Path(__file__).parents[2] / "web"
PACKAGE = WEB.parent / "msprobe_ms" / "page"


def node(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Node in the folder of the sources, with what package-lock.json names."""
    if shutil.which("node") is None:
        absent("no node is on the path: apt-get install nodejs npm")
    if not (WEB / "node_modules" / "esbuild").exists():
        absent("esbuild is not installed: cd web && npm ci --ignore-scripts")
    return subprocess.run(["node", *arguments], cwd=WEB, capture_output=True, text=True, timeout=300)


def bundled(source: str, target: Path) -> Path:
    """Make one script of a source and what it imports, for Node."""
    program = "import { buildSync } from 'esbuild'; buildSync(JSON.parse(process.argv[1]))"
    options = {
        "entryPoints": [source], "outfile": str(target), "bundle": True, "platform": "node", "format": "esm",
        "tsconfig": "tsconfig.json",
    }  # fmt: skip
    done = node("--input-type=module", "-e", program, json.dumps(options))
    assert done.returncode == 0, done.stderr
    return target
