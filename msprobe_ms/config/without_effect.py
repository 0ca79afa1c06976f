"""Keys of the msprobe family that are accepted without effect, so that its files run unchanged."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from msprobe_ms.config.values import one_of


class _WithoutEffect(BaseModel):
    """Accepted so that files of the family run unchanged. A default is the value that asks for nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class GeneralWithoutEffect(_WithoutEffect):
    precision: Annotated[str, BeforeValidator(one_of("high", "low"))] = "high"  # statistics take at least fp32 anyway
    enable_dataloader: bool = False
    acl_config: str = ""
    risk_level: str = "ALL"
    custom_op_namespaces: list[str] = Field(default_factory=list)
    seed: int | None = None
    is_deterministic: bool = False


class SectionWithoutEffect(_WithoutEffect):
    backward_input: list[str] = Field(default_factory=list)
    slice: Any = None
    request_id: Any = None
    bench_path: str = ""
    diff_nums: int | None = None
    online_run_ut: bool = False
    online_run_ut_recompute: bool = False
    nfs_path: str = ""
    tls_path: str = ""
    host: str = ""
    port: int = -1
    unencrypted: bool = False
    online_disk: float | None = None
    online_wait: float | None = None
