"""Takes calls out of a shared folder: looks at it again and again, and deletes what it has taken."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msprobe_ms.remote.addresses import Address
from msprobe_ms.remote.folder_layout import END, HELLO, items
from msprobe_ms.remote.frames import FileSource, read_text
from msprobe_ms.remote.inbox import NoRoom
from msprobe_ms.remote.messages import End, MessageError, from_client
from msprobe_ms.remote.receiver import Receiver, Refusal
from msprobe_ms.support.files import open_regular
from msprobe_ms.support.log import logger
from msprobe_ms.support.translation import tr

#: Seconds between two looks; how long files may take to be seen here that were written before ``end`` was.
_PAUSE, _GRACE = 0.2, 10.0


class FolderServer:
    """Looks at a shared folder; each client's folder has a `Receiver`."""

    def __init__(self, address: Address, receiver: Callable[[], Receiver]) -> None:
        self._folder, self._new_receiver = Path(address.folder), receiver
        self._receivers: dict[str, Receiver] = {}
        #: Folders that are left alone; when the end of a client was seen first; what was told.
        self._refused: set[str] = set()
        self._ends: dict[str, float] = {}
        self._told: Counter[str] = Counter()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Look, until `stop`."""
        self._task = asyncio.create_task(self._look_again())

    async def stop(self) -> None:
        """Look no more; what is in the folder stays there."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def connected(self) -> int:
        """Clients of which it is certain that more may come: none, as a folder does not tell who is alive."""
        return 0

    async def _look_again(self) -> None:
        while True:
            try:
                for place in sorted(each for each in self._folder.iterdir() if _is_folder(each)):
                    await self._look(place)
            except OSError as error:
                self._tell(self._folder, tr("cannot be read: {strerror}", strerror=error.strerror or error))
            await asyncio.sleep(_PAUSE)

    async def _look(self, place: Path) -> None:
        if place.name in self._refused:
            return
        try:
            receiver = self._receivers.get(place.name) or await self._greet(place)
            if receiver is not None:
                await self._take(receiver, place)
        except (Refusal, MessageError) as error:
            self._refused.add(place.name)
            self._tell(place, tr("refused: {error}", error=error))
        except NoRoom as error:
            self._tell(place, tr("the disk takes nothing: {error}; it is tried again", error=error))
        except asyncio.IncompleteReadError:  # which a shared disk may show for a while
            self._tell(place, tr("hello or end is cut; it is tried again"))
        except OSError as error:
            self._tell(place, tr("cannot be read: {strerror}; it is tried again", strerror=error.strerror or error))
        except Exception as error:  # whatever one client's folder holds, the others' are looked at
            self._refused.add(place.name)
            self._tell(place, tr("refused: {error}", error=f"{type(error).__name__}: {error}"))

    async def _greet(self, place: Path) -> Receiver | None:
        with suppress(FileNotFoundError), open_regular(place / HELLO) as file:
            text = await read_text(FileSource(file))
            receiver = self._new_receiver()
            client = receiver.greet(text or b"")
            if client.hello.client != place.name:
                raise MessageError(tr("says that it is {client}", client=client.hello.client))
            self._receivers[place.name] = receiver
            return receiver
        return None

    async def _take(self, receiver: Receiver, place: Path) -> None:
        end = await self._end(place)  # first: all that it counts was written before
        for number, path in items(place):
            try:
                with open_regular(path) as file:
                    source = FileSource(file)
                    text = await read_text(source)
                    await receiver.take(text or b"", source)
            except (MessageError, asyncio.IncompleteReadError) as error:  # it has no row but that it never came
                self._tell(path, tr("{number} is refused: {error}", number=number, error=error))
            except OSError as error:
                self._tell(
                    path, tr("{number} cannot be read: {strerror}", number=number, strerror=error.strerror or error)
                )
                continue
            path.unlink(missing_ok=True)
            await asyncio.sleep(0)
        assert receiver.client is not None
        if end is not None:
            whole = receiver.client.received.all_up_to >= end.count
            if whole or time.monotonic() - self._ends[place.name] > _GRACE:
                receiver.end(end)
                del self._receivers[place.name]
                shutil.rmtree(place, ignore_errors=True)

    async def _end(self, place: Path) -> End | None:
        with suppress(FileNotFoundError), open_regular(place / END) as file:
            text = await read_text(FileSource(file))
            message = from_client(text or b"")
            if isinstance(message, End):
                self._ends.setdefault(place.name, time.monotonic())
                return message
        return None

    def _tell(self, path: Path, text: str) -> None:
        """Say it once for each folder and kind."""
        kind = f"{path.parent.name} {text.partition(':')[0].lstrip('0123456789')}"
        self._told[kind] += 1
        if self._told[kind] == 1:
            logger.warning("%s: %s", path, text)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and not path.name.startswith(".")
