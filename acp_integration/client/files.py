"""Files that an agent may read and write through the client: those under given roots, and no others."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

from acp_integration import jsonrpc
from acp_integration.client.builder import ClientBuilder
from acp_integration.errors import RequestError
from acp_integration.options import MIB
from acp_integration.wire.client import ReadTextFileRequest, WriteTextFileRequest

_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_DIRECTORY: Final = getattr(os, "O_DIRECTORY", 0)
_NONBLOCK: Final = getattr(os, "O_NONBLOCK", 0)
_BY_DESCRIPTOR: Final = os.open in os.supports_dir_fd


class ConfinedFiles:
    """Serves `fs/read_text_file`, and on demand `fs/write_text_file`, under some directories; used as a customizer.

    A symbolic link may point anywhere under the roots. What is opened is what was checked, also when a link is changed
    in between. Text is UTF-8; other bytes are read as replacement characters.

    Args:
        roots: the directories.
        write: whether files may be written, too.
        limit: the most that is read at once, in bytes.
    """

    def __init__(self, *roots: str | Path, write: bool = False, limit: int = 8 * MIB) -> None:
        self._roots = tuple(Path(os.path.realpath(root)) for root in roots)
        self._write = write
        self._limit = limit

    def __call__(self, builder: ClientBuilder) -> None:
        """Announce and serve the files of the client that is being built."""
        builder.announce("read_text_file")
        builder.on_read_text_file(self.read)
        if self._write:
            builder.announce("write_text_file")
            builder.on_write_text_file(self.write)

    def read(self, request: ReadTextFileRequest) -> str:
        """The text of a file, or some of its lines.

        Raises:
            RequestError: if it is outside the roots, not there, no regular file, or too much is asked for.
        """
        first = max(request.line or 1, 1) - 1
        with self._open(request.path, os.O_RDONLY) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
            if request.line is None and request.limit is None:
                data = file.read(self._limit + 1)
            else:
                last = None if request.limit is None else first + request.limit
                data = self._joined(islice(file, first, last))
        if len(data) > self._limit:
            raise _refused(f"more than {self._limit} bytes: ask for fewer lines, with line and limit")
        return data.decode("utf-8", "replace")

    def write(self, request: WriteTextFileRequest) -> None:
        """Replace or create a file; missing directories under the roots are created.

        Raises:
            RequestError: if it is outside the roots or cannot be written.
        """
        with self._open(request.path, os.O_WRONLY | os.O_CREAT) as descriptor:
            os.ftruncate(descriptor, 0)
            with os.fdopen(os.dup(descriptor), "wb") as file:
                file.write(request.content.encode("utf-8", "replace"))

    def _joined(self, lines: Iterator[bytes]) -> bytes:
        data = bytearray()
        for line in lines:
            data += line
            if len(data) > self._limit:
                break
        return bytes(data)

    @contextmanager
    def _open(self, path: str, flags: int) -> Iterator[int]:
        root, parts = self._place(path)
        try:
            descriptor = _open_under(root, parts, flags)
        except FileNotFoundError:
            raise RequestError(jsonrpc.RESOURCE_NOT_FOUND, "No such file", {"path": path}) from None
        except OSError as error:
            raise _refused(error.strerror or "it cannot be opened") from error
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise _refused("it is no regular file")
            yield descriptor
        finally:
            os.close(descriptor)

    def _place(self, path: str) -> tuple[Path, tuple[str, ...]]:
        real = Path(os.path.realpath(path))
        for root in self._roots:
            if Path(path).is_absolute() and real != root and real.is_relative_to(root):
                return root, real.relative_to(root).parts
        raise _refused("the path is not under a directory that this client serves")


def _open_under(root: Path, parts: tuple[str, ...], flags: int) -> int:
    """Open a path of real names one name at a time, so that none of them can be a link by now."""
    if not _BY_DESCRIPTOR:
        return os.open(root.joinpath(*parts), flags | _NOFOLLOW, 0o666)
    folder = os.open(root, os.O_RDONLY | _DIRECTORY)
    try:
        for name in parts[:-1]:
            below = _open_folder(name, folder, create=bool(flags & os.O_CREAT))
            os.close(folder)
            folder = below
        return os.open(parts[-1], flags | _NOFOLLOW | _NONBLOCK, 0o666, dir_fd=folder)
    finally:
        os.close(folder)


def _open_folder(name: str, parent: int, *, create: bool) -> int:
    flags = os.O_RDONLY | _DIRECTORY | _NOFOLLOW
    try:
        return os.open(name, flags, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
    os.mkdir(name, 0o777, dir_fd=parent)
    return os.open(name, flags, dir_fd=parent)


def _refused(reason: str) -> RequestError:
    return RequestError(jsonrpc.INVALID_PARAMS, f"The file is not served: {reason}")
