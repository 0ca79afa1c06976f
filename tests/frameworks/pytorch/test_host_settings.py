"""What a process has set for itself, and what it may not have more of: recording lives with it and changes nothing."""

from __future__ import annotations

import gc
import inspect
import io
import json
import locale
import logging
import os
import random
import resource
import signal
import sys
import threading
import warnings as python_warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from recording import leaves, read_step
from torch import nn

from msprobe_ms.arrays import one_pass
from msprobe_ms.dump.writing.writer import TENSOR_FOLDER
from msprobe_ms.pytorch import PrecisionDebugger, record
from msprobe_ms.support.log import logger

#: Numbers on which figures overflow, vanish, or are none.
EXTREMES = (float("inf"), float("nan"), 1e38, 1e-44, 3e-23)
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64)


@contextmanager
def strict(kind: str) -> Iterator[None]:
    """Every warning of numpy, or of anything, is an error."""
    if kind == "numpy":
        with np.errstate(all="raise"):
            yield
    else:
        with python_warnings.catch_warnings():
            python_warnings.simplefilter("error")
            yield


@pytest.mark.parametrize("way", ["C", "numpy"])
@pytest.mark.parametrize("kind", ["numpy", "warnings"])
def test_warnings_that_are_errors(dump_path: Path, kind: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "numpy":
        monkeypatch.setattr(one_pass, "_figures", None)
    net = nn.Sequential(nn.Linear(4, 4))
    with strict(kind), record(net, level="mix", dump_path=dump_path):
        for value in EXTREMES:
            for dtype in DTYPES:
                torch.add(torch.tensor([value, 1.0, -value] * 700).to(dtype), 1)
        net(torch.full((3, 4), 1e30)).sum().backward()
    data = read_step(dump_path).data
    calls = [entry for name, entry in data.items() if name.startswith("Torch.add.")]
    assert len(calls) == len(EXTREMES) * len(DTYPES)
    assert all(call["output"][0]["shape"] == [2100] for call in calls)
    assert not [path for path, leaf in leaves(data) if leaf is None]


@pytest.mark.parametrize("more", [0, 1, 2, 8])
def test_files_that_may_not_be_opened(dump_path: Path, warnings: list[str], more: int) -> None:
    """The training goes on, and what is missing is said."""
    net, x = nn.Sequential(nn.Linear(4, 4)), torch.randn(3, 4)
    debugger = PrecisionDebugger(dump_path=dump_path, level="mix", task="tensor")
    net(x).sum().backward()
    expected = [parameter.grad.clone() for parameter in net.parameters()]
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(20)]  # no number below the last is free
    resource.setrlimit(resource.RLIMIT_NOFILE, (held[-1] + 1 + more, limits[1]))
    try:
        for _ in range(2):
            net.zero_grad()
            debugger.start(net)
            net(x).sum().backward()
            debugger.stop()
            debugger.step()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for number in held:
            os.close(number)
    assert all(torch.equal(one.grad, other) for one, other in zip(net.parameters(), expected, strict=True))
    lacking = [step for step in range(2) if not is_whole(dump_path / f"step{step}")]
    assert bool(lacking) == any("Too many open files" in text for text in warnings)
    assert lacking == [0, 1] or more == 8


def is_whole(step: Path) -> bool:
    dumps = [json.loads(path.read_text()) for path in step.glob("*/dump.json")]
    return len(dumps) == 1 and "incomplete" not in dumps[0] and not list(step.glob("*/dump.journal"))


def state() -> dict[str, Any]:
    """What of the process any library could change."""
    mask = os.umask(0)
    os.umask(mask)
    return {
        "signals": [str(signal.getsignal(each)) for each in signal.valid_signals()],
        "filters": list(map(str, python_warnings.filters)),
        "hooks": [sys.excepthook, sys.unraisablehook, sys.displayhook, threading.excepthook],
        "showing": python_warnings.showwarning,
        "environment": dict(os.environ),
        "collector": [gc.isenabled(), gc.get_threshold(), len(gc.callbacks)],
        "interpreter": [sys.getrecursionlimit(), sys.getswitchinterval(), sys.gettrace(), sys.getprofile(),
                        sys.get_int_max_str_digits() if hasattr(sys, "get_int_max_str_digits") else None],
        "imports": [list(map(str, sys.meta_path)), list(sys.path), len(sys.path_hooks)],
        "locale": locale.setlocale(locale.LC_ALL),
        "numpy": [str(np.get_printoptions()), np.geterr(), str(np.random.get_state())],
        "random": [random.getstate(), torch.random.get_rng_state().tolist()],
        "torch": [
            torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads(), torch.is_anomaly_enabled(),
            torch.are_deterministic_algorithms_enabled(), torch.is_inference_mode_enabled(),
            torch.is_autocast_enabled(), torch.get_float32_matmul_precision(), str(vars(torch._tensor_str.PRINT_OPTS)),
            dict(nn.modules.module._global_forward_hooks),
        ],
        "threads": threading.active_count(),
        "folder and mask": [os.getcwd(), mask],
    }  # fmt: skip


@pytest.mark.parametrize("level", ["L0", "mix"])
def test_the_process_is_as_it_was(dump_path: Path, level: str) -> None:
    """While recording, too."""
    net, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), torch.ones(2, 4)
    net(x).sum().backward()
    before, files = state(), len(os.listdir("/proc/self/fd"))
    debugger = PrecisionDebugger(dump_path=dump_path, level=level, task="tensor")
    assert state() == before
    debugger.start(net)
    assert state() == before
    net(x).sum().backward()
    assert state() == before
    debugger.stop()
    debugger.step()
    assert state() == before
    assert len(os.listdir("/proc/self/fd")) == files


@pytest.fixture
def locks_of_handlers() -> Iterator[None]:
    """New ones after the test, as `Handler.handle` of Python 3.12 keeps one for good where a signal raises something
    just after it took it: other threads would wait for ever."""
    yield
    for handler in (*logger.handlers, *logging.getLogger().handlers):
        handler.createLock()


def test_ctrl_c_while_something_is_logged_keeps_no_other_thread_from_it() -> None:
    handler = type(logger.handlers[0])(io.StringIO())
    own = logging.Logger("own")
    own.addHandler(handler)
    before, interrupted = signal.signal(signal.SIGALRM, signal.default_int_handler), 0
    try:
        with ThreadPoolExecutor(1) as another:
            for number in range(1000):
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.0005 + number % 10 / 20_000)
                    for _ in range(10_000):
                        own.info("said")
                except KeyboardInterrupt:
                    interrupted += 1
                lock = handler.lock
                assert lock is not None and another.submit(lock.acquire, blocking=False).result(), interrupted
                another.submit(lock.release).result()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupted > 900


class TooLong(Exception):
    """As scripts call a time limit."""


@pytest.mark.usefixtures("locks_of_handlers")
def test_a_time_limit_of_the_script_arrives(dump_path: Path) -> None:
    """Whatever it interrupts: what a signal handler raises is no error of recording."""

    def expired(number: int, frame: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, expired)
    net, x, arrived = nn.Sequential(*[nn.Linear(4, 4) for _ in range(20)]), torch.ones(1, 4), 0
    debugger = PrecisionDebugger(dump_path=dump_path, level="mix")
    debugger.start(net)
    try:
        for number in range(40):
            signal.setitimer(signal.ITIMER_REAL, 0.001 + number / 10_000)
            try:
                for _ in range(100):  # a time beyond the limit
                    net(x)
            except TooLong:
                arrived += 1
    finally:
        signal.signal(signal.SIGALRM, before)
    debugger.stop()
    debugger.step()
    assert arrived > 35
    assert torch.is_grad_enabled()


def test_files_that_the_script_opened_are_its_own(dump_path: Path, tmp_path: Path) -> None:
    """Who becomes a daemon closes all that is open, and opens others, which have the same numbers."""
    net, x = nn.Linear(4, 4), torch.ones(1, 4)
    debugger = PrecisionDebugger(dump_path=dump_path, level="mix")
    debugger.start(net)
    net(x)
    inside = [number for number in map(int, os.listdir("/proc/self/fd")) if str(dump_path) in opened_as(number)]
    for number in inside:
        os.close(number)
    files = [(tmp_path / f"mine{number}").open("wb", buffering=0) for number in range(len(inside) + 2)]
    assert set(inside) <= {file.fileno() for file in files}
    net(x).sum().backward()
    debugger.stop()
    debugger.step()
    debugger.retire()
    for file in files:
        file.write(b"mine")
        file.close()
    assert {Path(file.name).read_bytes() for file in files} == {b"mine"}


def opened_as(number: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return ""


def test_a_call_near_the_end_of_the_stack_is_recorded_or_said_to_be_lost(dump_path: Path) -> None:
    net, x, done = nn.Linear(4, 4), torch.ones(1, 4), 0

    def at(depth: int) -> torch.Tensor:
        return net(x) if depth == 0 else at(depth - 1)

    def deepest(limit: int) -> int:
        nonlocal done
        last = 0
        for depth in range(limit - 120, limit):
            try:
                at(depth)
                last, done = depth, done + 1
            except RecursionError:
                pass
        return last

    limit = sys.getrecursionlimit()
    bare = deepest(limit)
    assert bare
    done = 0
    with record(net, level="mix", dump_path=dump_path):
        recorded = deepest(limit)
    assert bare - 6 <= recorded <= bare  # frames that a recorded function takes more
    assert torch.is_grad_enabled()
    dump = json.loads(next(dump_path.glob("step*/*/dump.json")).read_text())
    calls = sum(name.startswith("Functional.linear.") for name in dump["data"])
    assert calls == done or "incomplete" in dump


@pytest.mark.parametrize("room", range(10, 60, 7))
def test_start_and_stop_near_the_end_of_the_stack_raise_nothing(dump_path: Path, room: int) -> None:
    net, x, relu = nn.Linear(4, 4), torch.ones(1, 4), torch.relu
    debugger = PrecisionDebugger(dump_path=dump_path, level="mix")
    limit, depth = sys.getrecursionlimit(), len(inspect.stack())

    def cramped(*actions: Callable[[], None]) -> None:
        sys.setrecursionlimit(depth + room)
        try:
            for action in actions:
                action()
        finally:
            sys.setrecursionlimit(limit)

    cramped(partial(debugger.start, net))
    net(x).sum().backward()
    cramped(debugger.stop, debugger.step)
    debugger.stop()
    debugger.step()
    assert torch.relu is relu and torch.is_grad_enabled() and not net._forward_hooks


def test_what_is_printed_where_no_stream_is_open_goes_into_no_dump(dump_path: Path) -> None:
    """Who becomes a daemon may close the standard streams, and libraries print all the same."""
    net, x = nn.Sequential(nn.Linear(4, 4)), torch.randn(3, 4)
    debugger = PrecisionDebugger(dump_path=dump_path, level="mix", task="tensor")
    held = [os.dup(number) for number in range(3)]
    for number in range(3):
        os.close(number)
    try:
        debugger.start(net)
        loss = net(x).sum()
        for number in range(3):
            with suppress(OSError):
                os.write(number, b"printed")
        loss.backward()
        debugger.stop()
        debugger.step()
    finally:
        for number, each in enumerate(held):
            os.dup2(each, number)
            os.close(each)
    step = read_step(dump_path)
    files = [torch.load(step.folder / TENSOR_FOLDER / leaf["data_name"]) for _, leaf in leaves(step.data)]
    assert "Module.0.Linear.backward.0" in step.data and any(torch.equal(each, x) for each in files)


@pytest.mark.parametrize("where", ["handler", "filter", "record"])
def test_what_the_user_does_with_messages_costs_no_recording(dump_path: Path, where: str) -> None:
    """Handlers, filters and factories of records may raise."""

    def fail(*_: Any, **__: Any) -> None:
        raise ValueError("the user's")

    logger, factory = logging.getLogger("msprobe_ms"), logging.getLogRecordFactory()
    handler = logging.Handler()
    handler.emit = fail  # type: ignore[method-assign]
    net, x = nn.Sequential(nn.Linear(4, 4)), torch.randn(3, 4)
    debugger = PrecisionDebugger(dump_path=dump_path, level="mix")
    try:
        if where == "handler":
            logger.addHandler(handler)
        elif where == "filter":
            logger.addFilter(fail)
        else:
            logging.setLogRecordFactory(fail)  # type: ignore[arg-type]
        debugger.start(net)
        net(x).sum().backward()
        debugger.start(net)
        debugger.stop()
        debugger.step()
    finally:
        logger.removeHandler(handler)
        logger.removeFilter(fail)
        logging.setLogRecordFactory(factory)
    assert "Module.0.Linear.backward.0" in read_step(dump_path).data


@pytest.mark.usefixtures("locks_of_handlers")
def test_ctrl_c_while_recording_starts_or_stops_leaves_no_wrapper(dump_path: Path) -> None:
    """As in a notebook, whose user goes on; `make interrupts` tries every line."""
    holders = (torch, torch.Tensor, torch.nn.functional, nn.Module)
    net, x, interrupted = nn.Linear(4, 4), torch.ones(1, 4), 0
    with record(net, level="mix", dump_path=dump_path):
        net(x)
    debugger = PrecisionDebugger(dump_path=dump_path, level="mix")
    genuine = [dict(vars(holder)) for holder in holders]
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for number in range(20):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.001 + 0.002 * number)
                for _ in range(100):  # Python drops what comes in a finalizer
                    debugger.start(net)
                    debugger.stop()
            except KeyboardInterrupt:
                interrupted += 1
                debugger.stop()
            assert [dict(vars(holder)) for holder in holders] == genuine
            assert not net._forward_hooks
    finally:
        signal.signal(signal.SIGALRM, before)
        debugger.retire()
    assert interrupted > 15
