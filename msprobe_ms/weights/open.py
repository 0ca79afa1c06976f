"""Open weights: one file of any known format, by what it begins with, or a folder of shards."""

from __future__ import annotations

import json
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import BinaryIO, NoReturn

from msprobe_ms.arrays.npy import check_regular
from msprobe_ms.arrays.torch_file import Archive, refuse_legacy
from msprobe_ms.support.errors import DumpFormatError
from msprobe_ms.support.files import open_regular
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr, tr_join, tr_list
from msprobe_ms.weights import mindspore_file, numpy_archive, safetensors, torch_checkpoint
from msprobe_ms.weights.model import Checkpoint, Weight, clean

ACCEPTED = tr(
    "accepted are .ckpt of MindSpore, .safetensors, .pt, .pth or .bin of torch.save, .npz, or a folder with the shards "
    "of one model"
)

#: Suffixes of weight files; of a folder the first that occurs is read.
_SUFFIXES = (".safetensors", ".ckpt", ".npz", ".bin", ".pt", ".pth")
_INDEX = ".index.json"
_LONGEST_INDEX = 256 << 20


def open_weights(path: Path) -> Checkpoint:
    """Open what ``path`` holds; only headers are read. Close it, with ``with``, after the last weight is loaded.

    :raises DumpFormatError: nothing can be read, or a folder holds several checkpoints
    """
    if not path.is_dir():
        return _open_file(path)
    files, source = _shards(path)  # file → the parameters an index says it has
    whole = Checkpoint(path, "")
    holders: dict[str, Path] = {}
    for file in files:
        try:
            shard = _open_file(file)
        except DumpFormatError as error:
            if not files[file]:
                whole.problems.append(tr("{error}", error=error))
            for name in files[file]:
                whole.add(Weight(name, "unknown", (), partial(_refuse, error)))
            continue
        whole.opened.push(shard.__exit__)
        whole.format = shard.format
        for name, weight in shard.weights.items():
            if name in holders:
                whole.opened.close()
                raise DumpFormatError(
                    tr(
                        "{path}: {name} is in {first} and in {second}: these are several checkpoints or ranks; name "
                        "one file",
                        path=path,
                        name=name,
                        first=holders[name].name,
                        second=file.name,
                    )
                )
            holders[name] = file
            whole.add(weight)
        for what, count in shard.skipped.items():
            whole.skip(what, count)
        whole.problems += shard.problems
    if not whole.weights:
        raise DumpFormatError(
            tr(
                "{path}: no weights in it ({source}); {problems}",
                path=path,
                source=source,
                problems=tr_join(tr("; "), whole.problems[:3]) if whole.problems else ACCEPTED,
            )
        )
    whole.format = tr("{format}, {count} files", format=whole.format, count=len(files))
    return whole


def _open_file(path: Path) -> Checkpoint:
    check_regular(path)
    with ExitStack() as opened:
        try:
            file = opened.enter_context(open(path, "rb"))
            checkpoint = _read(path, file, file.read(64))
        except OSError as error:
            raise DumpFormatError(
                tr("{path}: cannot be read: {strerror}", path=path, strerror=error.strerror or error)
            ) from error
        checkpoint.opened = opened.pop_all()
    return checkpoint


def _read(path: Path, file: BinaryIO, head: bytes) -> Checkpoint:
    file.seek(0)
    if not head:
        raise DumpFormatError(tr("{path}: empty", path=path))
    if mindspore_file.is_encrypted(head):
        raise DumpFormatError(
            tr(
                "{path}: encrypted by MindSpore (enc_key): load it there with its dec_key and save it without",
                path=path,
            )
        )
    if head.startswith(b"PK\x03\x04"):
        return _read_archive(path, file)
    refuse_legacy(path, head)
    if safetensors.looks_like(head):
        return safetensors.read(path, file)
    if mindspore_file.looks_like(head):
        return mindspore_file.read(path, file)
    raise DumpFormatError(tr("{path}: begins like no file of weights; {accepted}", path=path, accepted=ACCEPTED))


def _read_archive(path: Path, file: BinaryIO) -> Checkpoint:
    """Both PyTorch and numpy write zip archives; PyTorch's has a description in it."""
    archive = Archive(path, file)
    return torch_checkpoint.read(path, archive) if archive.has("data.pkl") else numpy_archive.read(path, file)


def _refuse(error: DumpFormatError) -> NoReturn:
    raise error


def _shards(folder: Path) -> tuple[dict[Path, list[str]], str]:
    """The files of a folder that belong together, each with the names it is said to hold, and what said so."""
    try:
        inside = sorted(entry for entry in folder.iterdir() if entry.is_file())
    except OSError as error:
        raise DumpFormatError(
            tr("{folder}: cannot be read: {strerror}", folder=folder, strerror=error.strerror or error)
        ) from error
    if indices := [file for file in inside if file.name.endswith(_INDEX)]:
        index = min(indices, key=lambda file: ".safetensors" not in file.name)
        return _indexed(index), index.name
    found = {suffix: files for suffix in _SUFFIXES if (files := [file for file in inside if file.suffix == suffix])}
    if not found:
        raise DumpFormatError(tr("{folder}: no file of weights in it; {accepted}", folder=folder, accepted=ACCEPTED))
    suffix = next(iter(found))
    if len(found) > 1:
        logger.info(
            tr(
                "{folder}: of {found} files the {suffix} are read; name a file to read another",
                folder=folder,
                found=tr_list(found),
                suffix=suffix,
            )
        )
    return {file: [] for file in found[suffix]}, tr("its {suffix} files", suffix=suffix)


def _indexed(index: Path) -> dict[Path, list[str]]:
    """The files that an index of Hugging Face's form names: ``{"weight_map": {parameter: file}}``."""
    try:
        if index.stat().st_size > _LONGEST_INDEX:
            raise DumpFormatError(
                tr(
                    "{index}: longer than {longest_index} MiB, the most that is read",
                    index=index,
                    longest_index=_LONGEST_INDEX >> 20,
                )
            )
        with open_regular(index) as file:
            content = json.loads(file.read())
    except OSError as error:
        raise DumpFormatError(
            tr("{index}: cannot be read: {strerror}", index=index, strerror=error.strerror or error)
        ) from error
    except (ValueError, RecursionError) as error:
        raise DumpFormatError(tr("{index}: not valid JSON: {error}", index=index, error=error)) from error
    files = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(files, dict) or not all(isinstance(name, str) for name in files.values()):
        raise DumpFormatError(tr('{index}: expected {{"weight_map": {{parameter: file, …}}}}', index=index))
    found: dict[Path, list[str]] = {}
    for name, file in files.items():
        if not file or {"/", "\\", "\0"} & set(file) or file in (".", ".."):
            raise DumpFormatError(
                tr("{index}: {file}: accepted are names of files beside it", index=index, file=repr(clean(file)[:200]))
            )
        found.setdefault(index.with_name(file), []).append(clean(name))
    return found
