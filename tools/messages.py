"""Bring the catalogue of messages up to date: ``python tools/messages.py`` (make messages).

Reads the messages in the sources of the package, of the demonstration and of the report page, writes them into the
catalogue, keeps what is translated of them, drops what is no longer said, compiles the catalogue, and lists what has no
translation yet.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import polib
import yaml

ROOT = Path(__file__).parents[1]
PACKAGE, PAGE = ROOT / "msprobe_ms", ROOT / "web" / "src"
#: A script for users that speaks as the package does.
DEMONSTRATION = ROOT / "samples" / "demo.py"
CATALOGUE = PACKAGE / "locale" / "zh_CN" / "LC_MESSAGES" / "msprobe_ms.po"

#: Files of words that are said as they stand: sample configurations and the keys in them.
YAML = (PACKAGE / "config" / "keys.yaml", PACKAGE / "config" / "samples.yaml")
#: Files of reasons: those below a key ``reason``, and those that are keys themselves.
REASONS = (
    PACKAGE / "accuracy" / "judging" / "known_errors.yaml",
    PACKAGE / "frameworks" / "mindspore" / "known_differences.yaml",
)
REASONS_AS_KEYS = (PACKAGE / "accuracy" / "unchecked.yaml",)
#: The context of the messages of the page's script.
PAGE_CONTEXT = "page"
#: Methods of argparse whose first text, or whose ``help``, the parser says as a message.
_HEADINGS = ("add_argument_group",)
#: A field of a message, as a word that cannot be translated.
_FIELD = re.compile(r"\{\w+(:[^{}]*)?\}")
#: A template of two fields side by side, which another language may put in another order.
_SIDE_BY_SIDE = re.compile(r"\{\w+\} \{\w+\}")
#: Calls of the page's script that make a message: t("…"), t('…') or t(`…`), and of one or many plural.
_SCRIPT = re.compile(r"""(?<![\w.])t\(\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")


class Found(NamedTuple):
    """A message of the sources."""

    text: str
    plural: str | None
    context: str | None
    place: str


def messages() -> list[Found]:
    """Return the messages of all sources, each once, in the order of their files."""
    found: dict[tuple[str | None, str], Found] = {}
    for path in (*sorted(PACKAGE.rglob("*.py")), DEMONSTRATION):
        for each in of_module(path):
            found.setdefault((None, each.text), each)
    for path in YAML:
        for each in of_yaml(path):
            found.setdefault((None, each.text), each)
    for path in (*REASONS, *REASONS_AS_KEYS):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        for text in content if path in REASONS_AS_KEYS else reasons_in(content):
            found.setdefault((None, text), Found(text, None, None, str(path.relative_to(ROOT))))
    for path in sorted(PAGE.glob("*.ts*")):
        for each in of_script(path):
            found.setdefault((PAGE_CONTEXT, each.text), each)
    return list(found.values())


def of_module(path: Path) -> Iterator[Found]:
    """Yield the messages of a module: literals in tr and tr_count, and what the parser of commands says as it is."""
    place = str(path.relative_to(ROOT))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name == "tr":
            texts = [_text(each) for each in node.args[:1]]
        elif name == "tr_count":
            texts = [_text(each) for each in node.args[:2]]
        elif name == "add_argument":
            texts = [_text(each.value) for each in node.keywords if each.arg == "help"]
        elif name in _HEADINGS:
            texts = [_text(each) for each in node.args[:1]]
        else:
            continue
        if texts and all(text is not None and says_something(text) for text in texts):
            yield Found(str(texts[0]), texts[1] if len(texts) > 1 else None, None, place)


def of_yaml(path: Path) -> Iterator[Found]:
    """Yield the texts of a file of words, but for the lists in it, which hold names."""
    for value in yaml.safe_load(path.read_text(encoding="utf-8")).values():
        for text in value.values() if isinstance(value, dict) else (value,):
            if isinstance(text, str):
                yield Found(text, None, None, str(path.relative_to(ROOT)))


def reasons_in(content: object) -> Iterator[str]:
    """Yield the texts below the keys ``reason``, at any depth."""
    for key, value in content.items() if isinstance(content, dict) else ():
        if key == "reason":
            yield value
        else:
            yield from reasons_in(value)


def of_script(path: Path) -> Iterator[Found]:
    """Yield the messages of a module of the page's script: literals in t."""
    for found in _SCRIPT.finditer(path.read_text(encoding="utf-8")):
        text = ast.literal_eval(found[1])
        if says_something(text):
            yield Found(text, None, PAGE_CONTEXT, str(path.relative_to(ROOT)))


def says_something(text: str) -> bool:
    """Return whether a template has words, beside its fields and the name of the command, or an order of its own.

    What stands between the members of a list differs, too.
    """
    words = re.sub(r"\bmsprobe:", "", _FIELD.sub("", text))
    return bool(re.search(r"[A-Za-z]", words)) or bool(_SIDE_BY_SIDE.fullmatch(text)) or text == ", "


def fields(text: str) -> list[str]:
    """Return the names of the fields of a template; what a figure is shown as may be another in another language."""
    return sorted({re.sub(r":.*", "}", found[0]) for found in _FIELD.finditer(text)})


def compiled(catalogue: polib.POFile) -> bytes:
    """Return a catalogue as gettext reads it."""
    return bytes(catalogue.to_binary())


def main() -> int:
    """Write the catalogue; returns how many messages have no translation."""
    known = polib.pofile(str(CATALOGUE)) if CATALOGUE.exists() else polib.POFile()
    translated = {(each.msgctxt, each.msgid): each for each in known if not each.obsolete}
    made = polib.POFile(wrapwidth=0)
    made.metadata = {
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
        "Language": "zh_CN",
        "MIME-Version": "1.0",
        "Plural-Forms": "nplurals=1; plural=0;",
    }
    for each in messages():
        entry = polib.POEntry(msgid=each.text, msgctxt=each.context, occurrences=[(each.place, "")])
        before = translated.get((each.context, each.text))
        if each.plural is None:
            entry.msgstr = before.msgstr if before else ""
        else:
            entry.msgid_plural = each.plural
            entry.msgstr_plural = {0: before.msgstr_plural.get(0, "") if before and before.msgid_plural else ""}
        made.append(entry)
    CATALOGUE.parent.mkdir(parents=True, exist_ok=True)
    made.save(str(CATALOGUE))
    CATALOGUE.with_suffix(".mo").write_bytes(compiled(made))
    missing = made.untranslated_entries()
    for entry in missing:
        print(f"{entry.occurrences[0][0]}: {entry.msgid!r} has no translation")
    print(f"{len(made)} messages, {len(missing)} without a translation")
    return 1 if missing else 0


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


if __name__ == "__main__":
    sys.exit(main())
