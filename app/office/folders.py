"""Folders for files that don't stay: for their owner's eyes only, and gone when their process is.

Jobs' files, and those that hold facts for a moment: uploads, unpacked archives, what-if questions.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from app.domain.errors import OperatorError

PREFIX = "celosia-worker-"


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder as long as the context lasts; after a kill, until somebody needs the next one.

    Raises
    ------
    OperatorError
        If no temporary file can be written.
    """
    folders = WorkFolders()
    try:
        yield folders.make("scratch")
    finally:
        folders.close()


class WorkFolders:
    """A folder for each job below one that this process holds locked; others' left-overs are removed."""

    def __init__(self, parent: Path | None = None) -> None:
        self._parent = parent or Path(tempfile.gettempdir())
        try:
            self._sweep()
            self._root, self._lock = self._held()
        except OSError as error:
            raise OperatorError(f"Folder {self._parent} can't be written: {error.strerror}.") from error

    def make(self, name: str) -> Path:
        """A new, empty folder."""
        folder = self._root / name
        try:
            folder.mkdir(mode=0o700)
        except OSError as error:
            raise OperatorError(f"Folder {self._root} can't be written: {error.strerror}.") from error
        return folder

    def drop(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Remove all of them."""
        shutil.rmtree(self._root, ignore_errors=True)
        os.close(self._lock)

    def _held(self) -> tuple[Path, int]:
        """A new folder and its lock: another one where a sweep came first and took it for a left-over."""
        while True:
            root = Path(tempfile.mkdtemp(prefix=PREFIX, dir=self._parent))
            lock = os.open(root / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.fstat(lock).st_nlink:
                return root, lock
            os.close(lock)

    def _sweep(self) -> None:
        """Remove what processes left that were killed: nobody holds their lock any more."""
        for folder in self._parent.glob(f"{PREFIX}*"):
            with suppress(OSError):
                lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
                finally:
                    os.close(lock)
