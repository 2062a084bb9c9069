"""The level `redacted`: everything leaves without its secrets, without images, and without log files.

Every column is said here to be an id or number, a text, JSON, or packed bytes. Large contents are made whole, cleaned,
and moved out of their messages again, so they have other hashes than on this machine. A batch is read twice: what its
first reading knows to be secrets is masked wherever it stands alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from typing import Any, Final

import msgspec

from turnlog.model import BlobRef, FilePart, Message, Part, TextPart, ToolCallPart
from turnlog.redact import KnownValues, Redactor, mask_cut_text, mask_text
from turnlog.store import bodies, zstd
from turnlog.store.bodies import ExternalContent
from turnlog.store.feed.hidden_ids import HiddenIds
from turnlog.store.feed.values import IDENTITY, TABLES, FeedBatch, Row
from turnlog.store.packed_columns import unpack_data

TEXTS: Final[dict[str, frozenset[str]]] = {
    "owners": frozenset({"task"}),
    "projects": frozenset({"path", "name", "worktree"}),
    "sources": frozenset({"path", "root", "problem"}),
    "sessions": frozenset({"title", "cwd", "git_branch"}),
    "messages": frozenset({"text_preview"}),
    "parts": frozenset({"path", "command"}),
    "more_paths": frozenset({"path"}),
    "edit_totals": frozenset({"path"}),
    "call_totals": frozenset({"command"}),
    "annotations": frozenset({"title", "note"}),
    "diagnostics": frozenset({"reason", "json_path"}),
    "runs": frozenset(
        {"command", "cwd", "prompt", "system_prompt", "error", "result", "log_path", "log_problem", "origin"}
    ),
}
JSON: Final[dict[str, frozenset[str]]] = {
    "sessions": frozenset({"titles", "metadata", "totals"}),
    "links": frozenset({"metadata"}),
    "annotations": frozenset({"tags", "pins"}),
    "runs": frozenset({"usage", "metadata"}),
}
PACKED: Final[dict[str, frozenset[str]]] = {"events": frozenset({"body", "data"})}

NAMES: Final[dict[str, frozenset[str]]] = {
    "models": frozenset({"name"}),
    "parts": frozenset({"tool_name"}),
    "call_totals": frozenset({"tool_name"}),
    "runs": frozenset({"model"}),
}
"""Names that are compared: two with a secret stay two."""

HELD_BACK: Final = frozenset({"spills"})
"""Tables of which no row leaves at this level: they name bytes that stay."""

DROPPED: Final[dict[str, frozenset[str]]] = {"sources": frozenset({"head_hash", "tail_hash"})}
"""Hashes of bytes that stay."""

_CUT: Final = frozenset({"text_preview"})
"""Texts that may end in the middle of a secret."""


_SHORT: Final = 8
"""Digits of a hash that tell names apart."""

_AT_ONCE: Final = 200
"""Bodies that are looked at together."""


# Paths and commands of one push repeat in thousands of rows.
@lru_cache(maxsize=20_000)
def _masked(text: str) -> str:
    return mask_text(text)


class Redacting:
    """Takes secrets out of the rows of one batch."""

    def __init__(
        self,
        load_blob: Callable[[str], bytes],
        clean_of: Callable[[Collection[bytes]], set[bytes]],
        known: KnownValues,
        names: HiddenIds,
    ) -> None:
        """Keep what it needs.

        Args:
            load_blob: The bytes of a large content, by its SHA-256.
            clean_of: Which of these digests are of messages that are known to have no secrets by themselves.
            known: Secrets of these sessions, which are masked wherever they stand alone; more are added.
            names: Tells apart names that differ only in their secrets, the same on all machines of a person.
        """
        self._load_blob = load_blob
        self._clean_of = clean_of
        self.clean: dict[bytes, None] = {}
        """Digests of messages in which no secret was found, and of which that was not known."""
        self._learned = set[bytes]()
        """Digests of messages in which secrets were found."""
        self._known = known
        self._redactor = Redactor(known)
        self._hidden = names
        self._names: dict[str, str] = {}
        self.contents: dict[str, bytes] = {}
        """SHA-256 -> large contents that were cleaned."""

    @property
    def masked(self) -> Counter[str]:
        """Rule -> how often a secret was taken out of a message."""
        found = Counter[str]()
        for each in self._redactor.report:
            found[each.rule] += each.times
        return found

    def learn(self, bodies: Iterable[bytes]) -> None:
        """Look for secrets in the JSON of messages, whether or not they leave."""
        left = iter(bodies)
        while some := [(_digest(body), body) for body in islice(left, _AT_ONCE)]:
            self._learn(some)

    def _learn(self, bodies: Sequence[tuple[bytes, bytes]]) -> set[bytes]:
        """Learn bodies, given with their digests; those of bodies without secrets."""
        known = self._clean_of([digest for digest, _ in bodies])
        for digest, body in bodies:
            if digest in self.clean or digest in self._learned or digest in known:
                continue
            if self._redactor.learn(msgspec.Raw(body)):
                self._learned.add(digest)
            else:
                self.clean[digest] = None
        return {digest for digest, _ in bodies} - self._learned

    def redact(self, batch: FeedBatch, names: dict[str, dict[int, Row]]) -> FeedBatch:
        """The rows without secrets; `names` are changed to what they are now."""
        self._learn_batch(batch)
        plain = {key: zstd.decompress(body) for key, body in batch.bodies.items()}
        digests = {key: _digest(body) for key, body in plain.items()}
        without = self._learn([(digests[key], body) for key, body in plain.items()])
        clean = {key for key, digest in digests.items() if digest in without}
        large = {row[1] for row in batch.rows.get("blob_uses", ())}
        rows = {
            table: self._rows(table, found, clean - large)
            for table, found in batch.rows.items()
            if table not in HELD_BACK
        }
        for table, identity in IDENTITY.items():
            places = [TABLES[table].index(name) for name in identity]
            if table in TEXTS or table in NAMES:
                changed = {row[0]: tuple([row[at] for at in places]) for row in rows.get(table, ())}
                names.setdefault(table, {}).update(changed)
        self._mask_names(names, batch)
        rows["blobs"], rows["blob_uses"] = [], []
        made: dict[int, bytes] = {}
        for key, body in plain.items():
            # Only these are decoded: large contents are cleaned whole, and images (`data:` URLs) are left out.
            if key in large or b'"data:' in body:
                cleaned, found = self._clean(body)
                for content in found:
                    data = b"".join(bytes(piece) for piece in content.pieces())
                    self.contents[content.sha256.hex()] = data
                    rows["blob_uses"].append((content.sha256, key))
                    rows["blobs"].append((content.sha256, content.size, content.media_type, 0, b""))
            else:
                cleaned = self._without_secrets(body, is_clean=key in clean)
            made[key] = batch.bodies[key] if cleaned is body else zstd.compress(cleaned)
        rows["blob_uses"] = sorted(set(rows["blob_uses"]))
        rows["blobs"] = sorted(set(rows["blobs"]))
        return msgspec.structs.replace(batch, rows=rows, bodies=made)

    def _learn_batch(self, batch: FeedBatch) -> None:
        for table in batch.rows.keys() - HELD_BACK:
            # What is left of a cut secret is no secret: it would be masked wherever it stands alone.
            texts = [TABLES[table].index(column) for column in TEXTS.get(table, frozenset()) - _CUT]
            jsons = [TABLES[table].index(column) for column in JSON.get(table, ())]
            packed = [TABLES[table].index(column) for column in PACKED.get(table, ())]
            for row in batch.rows[table]:
                for at in texts:
                    self._redactor.learn(row[at])
                for at in jsons:
                    self._redactor.learn(msgspec.Raw(row[at].encode()) if row[at] else None)
                for at in packed:
                    self._redactor.learn(unpack_data(row[at]) if row[at] else None)
        for sha256, *_ in batch.rows.get("blob_uses", ()):
            self._redactor.learn(self._load_blob(sha256.hex()))

    def _without_secrets(self, body: bytes, *, is_clean: bool) -> bytes:
        # Clean by itself is not enough: a secret that another message shows to be one may stand here alone.
        if is_clean and not self._known.may_be_in_json(body.decode(errors="surrogateescape")):
            return body
        return self._redactor.redact_json(body)

    def _text(self, text: str) -> str:
        return self._known.mask(_masked(text))

    def _name(self, name: str) -> str:
        if name not in self._names:
            masked = self._text(name)
            self._names[name] = name if masked == name else f"{masked}~{self._hidden.hash(name)[:_SHORT]}"
        return self._names[name]

    def _cut_text(self, text: str) -> str:
        return self._known.mask(mask_cut_text(text), is_cut=True)

    def _rows(self, table: str, rows: list[Row], clean: Collection[int]) -> list[Row]:
        """Rows of a table without secrets; `clean` are the keys of messages in whose whole texts no rule finds one."""
        changes: dict[int, Callable[[Any], Any]] = {}
        for kinds, change in (
            *((TEXTS, self._text), (NAMES, self._name)),
            *((JSON, self._json), (PACKED, self._packed), (DROPPED, _nothing)),
        ):
            for column in kinds.get(table, ()):
                changes[TABLES[table].index(column)] = self._cut_text if column in _CUT else change
        if not changes:
            return rows
        made: list[Row] = []
        for row in rows:
            values = list(row)
            for at, change in changes.items():
                if values[at]:
                    # The beginning of a text in which there is nothing: what is known is all that can be cut there.
                    is_of_clean = change == self._cut_text and row[0] in clean
                    values[at] = self._known.mask(values[at], is_cut=True) if is_of_clean else change(values[at])
            made.append(tuple(values))
        return made

    def _json(self, text: str) -> str:
        return self._redactor.redact_json(text.encode()).decode()

    def _packed(self, data: bytes) -> bytes:
        plain = unpack_data(data)
        assert isinstance(plain, msgspec.Raw)
        before = bytes(plain)
        after = self._redactor.redact_json(before)
        if after is before:
            return data
        return zstd.compress(after) if zstd.is_frame(data) else after

    def _clean(self, body: bytes) -> tuple[bytes, list[ExternalContent]]:
        """A body with large contents, cleaned and moved out again; images are left out."""
        message = bodies.resolve(_without_images(bodies.decode(body)), self._load)
        found: list[ExternalContent] = []
        cleaned = bodies.externalize(self._redactor.redact(message), found)
        return bodies.pack(cleaned), found

    def _mask_names(self, names: dict[str, dict[int, Row]], batch: FeedBatch) -> None:
        """Sources that are only named have their paths cleaned as those that are sent."""
        sent = {row[0] for row in batch.rows.get("sources", ())}
        wanted = {row[TABLES["memberships"].index("source_key")] for row in batch.rows.get("memberships", ())}
        known = names.get("sources", {})
        for key in (wanted & known.keys()) - sent:
            known[key] = (self._text(known[key][0]),)

    def _load(self, reference: BlobRef) -> bytes:
        return self._load_blob(reference.sha256)


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=16).digest()


def _nothing(_: Any) -> None:
    return None


def _without_images(message: Message) -> Message:
    return msgspec.structs.replace(message, parts=tuple([_without_image(part) for part in message.parts]))


def _without_image(part: Part) -> Any:
    if isinstance(part, ToolCallPart):
        results = tuple(
            [
                msgspec.structs.replace(result, content=tuple([_without_image(each) for each in result.content]))
                for result in part.results
            ]
        )
        return msgspec.structs.replace(part, results=results)
    if not isinstance(part, FilePart) or part.media_type.startswith("text/"):
        return part
    if part.url is not None and not part.url.startswith("data:"):
        return part
    return TextPart(id=part.id, text=f"[{part.media_type}, held back]")
