"""In which state a framework's process is: its mode, its rank, its backward."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from msprobe_ms.frameworks.compiled_call import ExecutionMode
from msprobe_ms.frameworks.quiet import Quiet
from msprobe_ms.frameworks.repeating import Repeater
from msprobe_ms.support.patching import Hooks
from msprobe_ms.support.translation import tr


class ProcessInterface(ABC):
    """The state of the process, and how the tool stays unseen in it."""

    def prepare(self) -> None:
        """Called at every start, before anything is put in place."""
        return None

    def lockstep(self) -> Hooks | None:
        """Return what keeps the framework in lockstep with Python: recorded calls wait for their tensors one by one.

        Its ``remove`` may be called repeatedly, until the framework could run ahead again. None where there is nothing
        to do.
        """
        return None

    def is_tracing(self) -> bool:
        """Whether calls made on this thread now are a tracer's or a transform's, on stand-ins that hold no values."""
        return False

    @abstractmethod
    def quiet(self) -> Quiet:
        """Return a context, to be used inside of `unseen`, for what the tool computes: it enters no gradient graph.

        It is made before `unseen` begins.
        """

    #: Gives a context for what the tool does with tensors: users' modes and classes are not told of it.
    unseen: Callable[[], AbstractContextManager[Any]] = nullcontext

    def quietly(self, make: Callable[..., Any], *given: Any) -> Any:
        """Return what ``make`` gives, which computes with tensors: nobody is told, and no gradient graph is entered."""
        quiet = self.quiet()
        try:
            with self.unseen(), quiet:
                return make(*given)
        except BaseException:
            quiet.restore()
            raise

    def repeater(self) -> Repeater:
        """Return what makes calls once more with other arguments (task free_benchmark)."""
        raise NotImplementedError

    @abstractmethod
    def rank(self) -> int | None:
        """Return this process's rank, None when it is not part of a distributed job."""

    def group(self, group: Any) -> Any:
        """The process group meant by an argument ``group``, as a value that ``special_leaf`` knows."""
        return group

    def execution_mode(self) -> ExecutionMode:
        """Return how this process runs what it calls from here on."""
        return ExecutionMode.PYNATIVE

    def mode_text(self) -> str:
        """Say what runs in the present execution mode, for the user."""
        return tr("dynamic graphs")

    #: How a user comes back to dynamic graphs, in the imperative after "use".
    how_to_be_dynamic: str = ""

    def in_backward(self) -> bool:
        """Whether this thread runs a backward now; True where a framework cannot tell."""
        return True

    #: ``(path fragment, function name)`` of the functions that run forward again in backward.
    recomputing: tuple[tuple[str, str], ...] = ()
    #: Path fragments of the source files a module call runs through between the user's code and the hooks.
    machinery: tuple[str, ...] = ()
    #: Path fragments of framework source files in which operations are tried on stand-ins, without `is_tracing`.
    tracers: tuple[str, ...] = ()
    #: Path fragments of framework source files whose frames mean nothing to a user.
    plumbing: tuple[str, ...] = ()
