"""How single kernels are observed (level L2)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, Protocol

from msprobe_ms.frameworks.kernel_dump import DeviceDump, KernelDumpControl
from msprobe_ms.support.patching import Hooks
from msprobe_ms.support.translation import tr

#: ``on_kernel(name, inputs, launch)`` launches one kernel and gives its results back.
OnKernel = Callable[[str, Sequence[Any], Callable[[], Any]], Any]


class NodeObserver(Protocol):
    """Told of one node of the gradient graph while backward runs through it."""

    def begins(self, grad_outputs: Sequence[Any]) -> None: ...

    def ends(self, grad_inputs: Sequence[Any], grad_outputs: Sequence[Any]) -> None:
        """``grad_outputs`` came in and ``grad_inputs`` are what the node made of them; None where there is none."""


class KernelInterface:
    """Kernels one by one, and the dumps of devices that do not show them."""

    #: Why single kernels cannot be recorded here, a sentence; None where they can.
    no_kernels: str | None = tr("Level L2 records kernels of MindSpore 2.9 and later; use one of L0, L1, mix")

    def device_dump(self, configuration: Path | None) -> DeviceDump | None:
        """Return the dump of a device that shows no kernel one by one; None where `intercept_kernels` has them.

        Raises UsageError where there is no such device, and for a ``configuration`` that it does not take.
        """
        return None

    def intercept_kernels(self, on_kernel: OnKernel) -> Hooks:
        """Return what brings every kernel that this thread launches to ``on_kernel``. Only without `no_kernels`."""
        raise NotImplementedError

    def observe_nodes(
        self, tensors: Sequence[Any], known: set[Hashable], observer: Callable[[str], NodeObserver | None]
    ) -> None:
        """Have the nodes behind ``tensors`` observed that are not ``known`` yet, and add them there.

        ``observer`` gives of a node's name (``BiasAdd``) who is told of it; None leaves it alone.
        """
        raise NotImplementedError

    def memory(self, tensor: Any) -> tuple[int, int]:
        """Return the address of the tensor's first element and the number of bytes of its elements."""
        raise NotImplementedError

    def kernel_dump(self) -> KernelDumpControl:
        """Return the framework's own kernel dump. Only where `execution_mode` may be another than PYNATIVE."""
        raise NotImplementedError
