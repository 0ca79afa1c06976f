"""What a pre-check reads of a config.json (section ``run_ut``, in 26.x ``acc_check``) or of msprobe's config.yaml."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from msprobe_ms.support.errors import ConfigError
from msprobe_ms.support.text import show, suggestion
from msprobe_ms.support.translation import tr, tr_join, tr_list
from msprobe_ms.support.yaml_files import UnreadableError, read_shallow

_SECTIONS = ("acc_check", "run_ut")
_LARGEST = 1 << 20
Model = TypeVar("Model", bound=BaseModel)


class Section(BaseModel):
    """What the file may say.

    With ``is_online`` calls come from trainings (`msprobe_ms.remote.addresses`); ``dump_path`` stands at the top of the
    file, and is where their tables go. ``precision`` is msprobe's number of digits in tables;
    ``quantization_api_list`` is taken and has no effect.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    white_list: list[str] = Field(default_factory=list)
    black_list: list[str] = Field(default_factory=list)
    error_data_path: str = "./"
    precision: int = Field(default=14, ge=0, le=20)
    quantization_api_list: list[str] = Field(default_factory=list)
    is_online: bool = False
    is_benchmark_log: bool = False
    nfs_path: str = ""
    host: str = ""
    port: int = -1
    rank_list: list[int] = Field(default_factory=lambda: [0])
    tls_path: str | None = None
    unencrypted: bool = False
    master_ip: str = ""
    master_port: str = ""
    dump_path: str = ""


class SingleCall(BaseModel):
    """config_op.json of ``op_generate``. ``extract_api_path`` and ``iter_times`` are taken and have no effect."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    dump_json_path: str
    api_name: str
    extract_api_path: str = ""
    propagation: Literal["forward", "backward"] = "forward"
    data_mode: Literal["random_data", "real_data"] = "random_data"
    random_seed: int = 1234
    iter_times: int = 1


def read_single_call(path: Path) -> SingleCall:
    """Read config_op.json.

    :raises ConfigError: the file cannot be read, or a key or value is not accepted
    """
    return _validated(SingleCall, _content(path), path)


def read_section(path: Path) -> Section:
    """Read the section of a pre-check; a file without one has the defaults.

    :raises ConfigError: the file cannot be read, or a key or value is not accepted
    """
    content = _content(path)
    section = next((content[name] for name in _SECTIONS if name in content), None)
    if section is None:
        section = {} if path.suffix == ".json" else content
    found = _validated(Section, section, path)
    folder = content.get("dump_path")
    return found.model_copy(update={"dump_path": folder}) if isinstance(folder, str) else found


def _content(path: Path) -> dict[str, Any]:
    try:
        text = read_shallow(path, _LARGEST)
        content: Any = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except UnreadableError as error:
        raise ConfigError(tr("{path}: {error}", path=path, error=error)) from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise ConfigError(
            tr("{path}: is neither JSON nor YAML: {problem}", path=path, problem=str(error).splitlines()[0])
        ) from error
    if not isinstance(content, dict):
        accepted = tr_join(tr(" or "), _SECTIONS)
        raise ConfigError(
            tr(
                "{path}: holds {content}; accepted is an object with a section {accepted}",
                path=path,
                content=show(content),
                accepted=accepted,
            )
        )
    return content


def _validated(model: type[Model], content: Any, path: Path) -> Model:
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise ConfigError(tr("{path}: {told}", path=path, told=_told(error, sorted(model.model_fields)))) from error


def _told(error: ValidationError, accepted: Sequence[str]) -> str:
    """Every mistake of the file, one after the other."""
    return tr_join(tr("; "), (_mistake(found, accepted) for found in error.errors()))


def _mistake(found: Any, accepted: Sequence[str]) -> str:
    key = ".".join(map(str, found["loc"])) or tr("the section")
    if found["type"] == "missing":
        return tr("{key} is missing", key=key)
    if found["type"] == "extra_forbidden":
        return tr(
            "{key} is no key of a pre-check{suggestion}; accepted are {accepted}",
            key=key,
            suggestion=suggestion(key, accepted),
            accepted=tr_list(accepted),
        )
    wrong = f"{found['msg'][:1].lower()}{found['msg'][1:]}"
    return tr("{key}: is {value}; {wrong}", key=key, value=show(found["input"]), wrong=wrong)
