"""Log files as a hub sends them, with any names."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from turnlog.agents import agent
from turnlog.hub.machine.pulling import PulledLogs
from turnlog.store import zstd


def packed_of(*files: tuple[str, bytes], mtime: float = 0) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in files:
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(data), mtime
            archive.addfile(member, io.BytesIO(data))
    return zstd.compress(packed.getvalue())


def pulled(*files: tuple[str, bytes], mtime: float = 0) -> PulledLogs:
    return PulledLogs(packed_of(*files, mtime=mtime))


def written(name: str, to: Path, *files: tuple[str, bytes]) -> tuple[dict[str, bytes], dict[str, str]]:
    """What is written below a folder of these files of a session of an agent, and why the others are not."""
    logs = pulled(*files)
    logs.refuse_other_than_logs(agent(name))
    kept = {path.relative_to(to).as_posix(): path.read_bytes() for path, _ in logs.write(to)}
    return kept, {each.path: each.reason for each in logs.missing}
