"""Folders for the files of jobs: for their owner's eyes only, and gone when their process is."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from app.domain.errors import OperatorError

PREFIX = "celosia-worker-"


class WorkFolders:
    """A folder for each job below one that this process holds locked; others' left-overs are removed."""

    def __init__(self, parent: Path | None = None) -> None:
        self._parent = parent or Path(tempfile.gettempdir())
        try:
            self._sweep()
            self._root = Path(tempfile.mkdtemp(prefix=PREFIX, dir=self._parent))
            self._lock = os.open(self._root / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
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
