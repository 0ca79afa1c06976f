"""Profiles of reports: ``v110`` (msprobe 1.1.0), ``latest`` (26.x, mended), ``maca`` (MetaX) and ``own``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msprobe_ms.comparison.model import Comparison
from msprobe_ms.comparison.reporting.profiles.base import Profile
from msprobe_ms.comparison.reporting.profiles.latest import Latest
from msprobe_ms.comparison.reporting.profiles.maca import Maca
from msprobe_ms.comparison.reporting.profiles.own import Own
from msprobe_ms.comparison.reporting.profiles.v110 import V110

#: By name; another set of thresholds is ``dataclasses.replace(PROFILES["v110"], thresholds=…)``.
PROFILES: Mapping[str, Profile] = MappingProxyType({"v110": V110(), "latest": Latest(), "own": Own(), "maca": Maca()})


def judge(comparison: Comparison, profile: Profile) -> None:
    """Fill every row's ``result``, ``reason`` and ``colour`` by the profile's rules."""
    profile.judge(comparison)
