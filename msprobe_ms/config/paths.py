"""Check the two paths of a configuration before training starts, and make them absolute."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from msprobe_ms.config.values import Rejected
from msprobe_ms.support.text import show_path


def writable_folder(path: Path) -> Path:
    """Return ``path``, absolute, once files can be written there; creates nothing that stays.

    Raises `Rejected`, or `OSError`/`ValueError` for a path the system cannot take at all.
    """
    path = Path(os.path.abspath(path))
    existing = _nearest_existing(path)
    if not existing.is_dir():
        unusable = f"{show_path(path)} is not usable: " if existing != path else ""
        raise Rejected(((), f"{unusable}{_what_is(existing)}; use a folder, or a new path"))
    try:
        # Asking the kernel is the one check that holds for root, read-only mounts and kernel file systems alike.
        with tempfile.TemporaryFile(dir=existing):
            return path
    except OSError as error:
        place = f"{show_path(existing)}: {error.strerror}"
        raise Rejected(
            ((), f"{show_path(path)} cannot be written ({place}); use a folder this user may write")
        ) from None


def _nearest_existing(path: Path) -> Path:
    for candidate in (path, *path.parents):
        try:
            os.lstat(candidate)
        except (FileNotFoundError, NotADirectoryError):
            continue
        return candidate
    return path


def _what_is(path: Path) -> str:
    kind = "a link to nothing" if stat.S_ISLNK(os.lstat(path).st_mode) and not path.exists() else "a file"
    return f"{show_path(path)} is {kind}"


def beside_or_here(path: Path, config_file: Path) -> Path:
    """Return ``path``, absolute, below the configuration's folder if it is a file there, else the working folder."""
    places = list(dict.fromkeys(Path(os.path.abspath(folder / path)) for folder in (config_file.parent, Path.cwd())))
    for place in places:
        if place.is_file():
            return place
    looked = " and ".join(show_path(place) for place in places)
    raise Rejected(((), f"{show_path(path)} is not a file (looked for {looked}); use the path of a yaml file"))
