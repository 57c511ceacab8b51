"""What a folder holds, in enough detail to notice any change."""

from pathlib import Path


def listing(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Map every path to its mode, time of change and bytes."""
    found = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        status = path.lstat()
        found[str(path.relative_to(folder))] = (
            status.st_mode,
            status.st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
    return found


def contents(folder: Path) -> dict[str, bytes]:
    """Map every path to its bytes; folders count, times do not."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
        for path in sorted(folder.rglob("*"))
    }
