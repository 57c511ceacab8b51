"""Which jobs a running program has taken, so that another one on the same store leaves them to it."""

import json
import secrets
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout


class Claims:
    """Claims of running programs, each a list of job keys beside a file that its owner keeps locked.

    The system frees a lock when its owner ends, however it ends: the claim of a killed program is void at once, on
    whatever machine and under whatever process number it ran.

    Parameters
    ----------
    folder : Path
        Where the claims of a store are. It is made by the first claim.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)

    @contextmanager
    def hold(self, keys: Collection[str]) -> Iterator[set[str]]:
        """Take the jobs that no other running program has, for the time of a ``with`` block.

        Parameters
        ----------
        keys : collection of str
            Keys of the jobs that are wanted.

        Yields
        ------
        set of str
            Those of `keys` that are claimed now; the others are with another program.

        Raises
        ------
        OSError
            If the folder cannot be written.
        """
        own = FileLock(self.folder / f"{secrets.token_hex(8)}.claim")
        with self._alone():
            free = set(keys) - self._taken()
            if free:
                own.acquire()
                _keys_of(own).write_text(json.dumps(sorted(free)), encoding="utf-8")
        try:
            yield free
        finally:
            if own.is_locked:
                with self._alone():
                    _remove(own)

    def remove_void(self) -> None:
        """Remove the claims of programs that were killed; where there is none, or it cannot be removed, do nothing."""
        if any(self.folder.glob("*.claim")):
            with suppress(OSError), self._alone():
                self._taken()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other programs from reading and changing claims meanwhile."""
        self.folder.mkdir(parents=True, exist_ok=True)
        # This file stays: removing one that others wait for would let two of them in.
        with FileLock(self.folder / "door"):
            yield

    def _taken(self) -> set[str]:
        """Return the claimed keys; claims whose owner is gone are removed."""
        taken: set[str] = set()
        for path in self.folder.glob("*.claim"):
            claim = FileLock(path)
            try:
                claim.acquire(timeout=0)
            except Timeout:
                taken.update(json.loads(_keys_of(claim).read_text(encoding="utf-8")))
            else:
                _remove(claim)
        return taken


def _keys_of(claim: FileLock) -> Path:
    return Path(claim.lock_file).with_suffix(".keys")


def _remove(claim: FileLock) -> None:
    _keys_of(claim).unlink(missing_ok=True)
    claim.release()
    Path(claim.lock_file).unlink(missing_ok=True)
