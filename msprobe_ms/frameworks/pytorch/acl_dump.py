"""Kernels of PyTorch on Ascend: the device dumps them itself, as a configuration of CANN's says (``torch_npu.npu``)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from msprobe_ms.support.errors import UsageError
from msprobe_ms.support.json_files import read_object
from msprobe_ms.support.text import show
from msprobe_ms.support.translation import tr

#: Bytes read of a configuration.
_LARGEST = 1 << 20

_FORM = '{"dump": {"dump_list": [], "dump_path": "./kernels", "dump_mode": "all", "dump_op_switch": "on"}}'


class AclDump:
    """Has the device dump what its kernels take in and give out, from `install` to `remove`.

    It writes ``{dump_path}/{time}/{device}/…``, files that ``msprobe convert -d`` reads.
    """

    def __init__(self, configuration: Path | None) -> None:
        """Raises UsageError where there is no device, and for a configuration that dumps nothing."""
        self._npu = _device()
        if configuration is None:
            raise UsageError(tr('level "L2": acl_config is missing; give the path of a json file, {form}', form=_FORM))
        self._configuration = configuration
        self.folder = _dump_path(configuration)

    def install(self) -> None:
        self._npu.init_dump()
        self._npu.set_dump(str(self._configuration))

    def remove(self) -> None:
        self._npu.synchronize()  # kernels that were launched belong to the dump
        self._npu.finalize_dump()


def _device() -> Any:
    torch_npu = sys.modules.get("torch_npu")  # whoever computes on such a device has imported it
    if torch_npu is None:
        missing = tr("torch_npu is not imported")
    elif not torch_npu.npu.is_available():
        missing = tr("torch_npu finds none")
    else:
        return torch_npu.npu
    dumps = tr("kernels that PyTorch runs are dumped by an Ascend device")
    raise UsageError(
        tr(
            'level "L2": {dumps}, and there is none here ({missing}); use one of L0, L1, mix',
            dumps=dumps,
            missing=missing,
        )
    )


def _dump_path(configuration: Path) -> Path:
    dump = read_object(configuration, _LARGEST, f"expected {_FORM}").get("dump")
    if not isinstance(dump, dict):
        raise UsageError(
            tr(
                "{configuration}: dump: {dump} is not accepted; expected {form}",
                configuration=configuration,
                dump=show(dump),
                form=_FORM,
            )
        )
    path = dump.get("dump_path")
    if not isinstance(path, str) or not path.strip():
        raise UsageError(
            tr(
                "{configuration}: dump.dump_path: {path} is not accepted; give a folder",
                configuration=configuration,
                path=show(path),
            )
        )
    if (switch := dump.get("dump_op_switch", "off")) != "on":
        raise UsageError(
            tr(
                '{configuration}: dump.dump_op_switch is {switch}: nothing would be dumped; use "on"',
                configuration=configuration,
                switch=show(switch),
            )
        )
    return Path(path)
