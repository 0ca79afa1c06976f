"""Apply a cell mapping: ``{dotted.name}.{Class}`` of a target Cell → the golden module's."""

from __future__ import annotations

from collections.abc import Mapping


class CellRules:
    """Rules of a cell mapping: an exact key wins; else each key that is a run of whole components is replaced once.

    >>> CellRules({"fc2.Dense": "fc2.Linear"}).golden("fc2", "Dense")
    ('fc2', 'Linear', ('fc2.Dense',))
    >>> CellRules({"encoder": "backbone"}).golden("net.encoder.fc", "Dense")
    ('net.backbone.fc', 'Dense', ('encoder',))
    """

    def __init__(self, rules: Mapping[str, str]) -> None:
        self.exact = rules
        #: What each rule is called in messages.
        self.spoken = set(rules)
        self.by_head: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
        for key, value in rules.items():
            parts = tuple(key.split("."))
            self.by_head.setdefault(parts[0], []).append((parts, tuple(value.split("."))))
        for candidates in self.by_head.values():
            candidates.sort(key=lambda rule: -len(rule[0]))

    def golden(self, path: str, class_name: str) -> tuple[str, str, tuple[str, ...]]:
        """The golden (path, class) and the rules that said so, none where no rule speaks of this Cell."""
        whole = f"{path}.{class_name}" if path else class_name
        moved, rules = (self.exact[whole], (whole,)) if whole in self.exact else self._replaced(tuple(whole.split(".")))
        golden_path, _, golden_class = moved.rpartition(".")
        return golden_path, golden_class, rules

    def _replaced(self, parts: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """One pass from the left, so that no rule acts on what another one wrote (``a: b`` beside ``b: a``)."""
        result: list[str] = []
        used: dict[tuple[str, ...], None] = {}
        place = 0
        while place < len(parts):
            for key, value in self.by_head.get(parts[place], ()):
                if key not in used and parts[place : place + len(key)] == key:
                    used[key] = None
                    result.extend(value)
                    place += len(key)
                    break
            else:
                result.append(parts[place])
                place += 1
        return ".".join(result), tuple(".".join(key) for key in used)
