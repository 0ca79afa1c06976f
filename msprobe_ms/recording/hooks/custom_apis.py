"""APIs that a script names itself: ``register_custom_api`` and ``restore_custom_api`` of a debugger."""

from __future__ import annotations

from typing import Any

from msprobe_ms.recording.debuggers import MethodOfCurrent
from msprobe_ms.recording.hooks.api_list import check_custom_api
from msprobe_ms.recording.hooks.apis import ApiHooks


class CustomApis:
    """The part of a debugger that takes further APIs to record."""

    #: None where no APIs are recorded.
    _apis: ApiHooks | None

    @MethodOfCurrent
    def register_custom_api(self, module: Any, api: str, api_prefix: str | None = None) -> None:
        """Record calls of ``module.api`` too, at L1 and mix, as ``{api_prefix}.{api}.{n}``.

        ``module`` is a module or a class written in Python; ``api_prefix`` is its name unless given. Raises UsageError.
        """
        check_custom_api("register_custom_api", module, api, api_prefix)
        if self._apis is not None:
            self._apis.register(module, api, api_prefix or module.__name__.rpartition(".")[2])

    @MethodOfCurrent
    def restore_custom_api(self, module: Any, api: str) -> None:
        """Undo `register_custom_api`; nothing happens to what was not registered. Raises UsageError."""
        check_custom_api("restore_custom_api", module, api, None)
        if self._apis is not None:
            self._apis.unregister(module, api)
