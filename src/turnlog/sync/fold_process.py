"""A process that folds sources for another one, which writes them: `python -m turnlog.sync.fold_process`.

Tasks arrive on standard input; what was folded goes to standard output (see `sync.folding`). The process ends with its
input, which also ends when the writer was killed.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from queue import SimpleQueue
from typing import IO

from turnlog.agents import agent as registered_agent
from turnlog.agents.base import SourceKind
from turnlog.pricing import price_nanos
from turnlog.store.archive import FrameCollector
from turnlog.store.external_content import Feed
from turnlog.store.sources import Fingerprint, SourceState
from turnlog.store.writing.prepared import prepare
from turnlog.store.writing.transaction import SourceRow
from turnlog.sync.folding import FoldedEnd, FoldedFeed, FoldRequest, pack, pack_changes, pack_messages, receive, send
from turnlog.sync.log_file import LogFile

_MOST_WAITING = 4 << 20
"""Bytes that are kept for a writer that is busy; more only for a single feed."""


def main(tasks: IO[bytes], results: IO[bytes]) -> None:
    """Fold the sources that arrive, until there are no more."""
    # Folding creates many objects and no cycles.
    gc.disable()
    given: SimpleQueue[FoldRequest] = SimpleQueue()
    sender = _Sender(results)

    def read_tasks() -> None:
        # In a thread: the writer must never wait for this process to read.
        with suppress(EOFError):
            while True:
                given.put(receive(tasks))
        # The writer has ended, or was killed.
        os._exit(0)

    threading.Thread(target=read_tasks, daemon=True).start()
    while True:
        task = given.get()
        try:
            for found in _fold(task):
                sender.send(found)
        except Exception as error:  # The writer reads the source itself, and reports what is wrong with it.
            sender.send(f"{type(error).__name__}: {error}")


def _fold(task: FoldRequest) -> Iterator[FoldedFeed | FoldedEnd]:
    """Read a source as `sync.reader` does when no pass has read it."""
    agent, source = registered_agent(task.source.agent), task.source
    state = SourceState(key=task.key, fingerprint=Fingerprint(0, 0, 0, 0), is_new=True)
    row = SourceRow(state.key, agent.name, source.path, 0, source.session_id, source.kind)
    archive = FrameCollector()
    sizes: list[int] = []
    with LogFile(source.path, state, archive, sizes.append) as file:
        status = file.status()
        state.fingerprint = Fingerprint.of(status)
        torn_line = None
        if state.fingerprint.size:
            state.parser_version = agent.parser_version
            fold = agent.fold(source, None)
            for offset, data in (file.iter_lines if source.appendable else file.whole)():
                changes = fold.feed(data, offset)
                feed = Feed(row.key, 0, offset, data) if row.is_log else None
                messages = [prepare(change, feed, price_nanos, for_transport=True) for change in changes.messages]
                changes.messages = []
                state.cursor = offset + len(data)
                state.lines += changes.counts.total
                del data, feed
                yield FoldedFeed(pack_changes(changes), pack_messages(messages), archive.take(), sum(sizes))
                sizes.clear()
            state.state = fold.state()
            is_torn = state.archived > state.cursor and source.kind is not SourceKind.SPILL
            if is_torn and file.has_torn_line(state.cursor):
                torn_line = file.line_number(state.cursor)
            state.head_hash, state.tail_hash = file.samples(state.archived)
        yield FoldedEnd(state.fingerprint, status.st_mode, state, archive.take(), torn_line)


class _Sender:
    """Sends messages in a thread, so that folding goes on while the writer is busy."""

    def __init__(self, results: IO[bytes]) -> None:
        self._results = results
        self._messages: deque[bytes] = deque()
        self._size = 0
        self._changed = threading.Condition()
        threading.Thread(target=self._run, daemon=True).start()

    def send(self, message: FoldedFeed | FoldedEnd | str) -> None:
        """Send a message; wait while too much is not sent yet."""
        data = pack(message)
        with self._changed:
            self._changed.wait_for(lambda: not self._messages or self._size + len(data) <= _MOST_WAITING)
            self._messages.append(data)
            self._size += len(data)
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._messages))
                data = self._messages[0]
            try:
                send(self._results, data)
            except OSError:
                os._exit(0)  # nobody reads any more
            with self._changed:
                self._messages.popleft()
                self._size -= len(data)
                self._changed.notify_all()
            del data


def _own_output() -> IO[bytes]:
    """Standard output, which from now on nobody else writes to: what an agent's module prints goes to the errors."""
    results = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return results


if __name__ == "__main__":
    # Ctrl-C reaches all processes of a terminal. The writer decides what it means, and stops this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main(sys.stdin.buffer, _own_output())
