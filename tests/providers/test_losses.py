"""Each feature that an API does not have is one named loss, and strict conversion refuses it."""

import pickle
from typing import Any

import pytest

from support.provider_messages import asking, assistant, call, image, png, result, thinking, user
from turnlog.errors import LossyConversionError
from turnlog.model import (
    BlobRef,
    Citation,
    DataPart,
    FilePart,
    Message,
    ProviderData,
    SourceDocumentPart,
    SourceUrlPart,
    TextPart,
    ToolCallPart,
    UnknownPart,
)
from turnlog.model.codec import to_json
from turnlog.providers import provider, provider_names

ALL = frozenset(provider_names())
CHAT = frozenset({"openai-chat"})
NO_MARK = frozenset({"openai-chat", "openrouter", "responses"})

GEMINI = frozenset({"gemini"})
GIF = image(b"GIF89a\1\0\1\0", "image/gif")
ODD_FILE = FilePart(media_type="application/zip", data=b"PK")
BLOB = BlobRef(sha256="0" * 64, size=100_000)
SEARCH = call("other_1", result("found"), name="web_search", provider_executed=True)

SIGNED = ProviderData(name="x", model="m", opaque={"thought_signature": "c2ln"})
SAID = TextPart(text="a", provider=ProviderData(name="x", model="m", opaque={"phase": "commentary"}))

FEATURES: list[tuple[str, Message, str, frozenset[str]]] = [
    ("thinking of another model", assistant(thinking("hm", "x", "m"), "a"), "reasoning-as-text", ALL - CHAT),
    ("thinking of another model", assistant(thinking("hm", "x", "m"), "a"), "reasoning-omitted", CHAT),
    ("withheld thinking", assistant(thinking("", "x", "m", data="d"), "a"), "reasoning-omitted", ALL),
    ("a signed text", assistant(TextPart(text="a", provider=SIGNED)), "signature-omitted", ALL),
    ("a signed call", assistant(call("c1", result("r"), provider=SIGNED)), "signature-omitted", ALL),
    ("a phase", assistant(SAID), "phase-omitted", ALL - {"responses"}),
    ("a phase that nothing has", assistant("a", metadata={"agent": {"phase": "musing"}}), "phase-omitted", ALL),
    ("an image that is too large", user("q", image(png(1, 1, 21 * 2**20))), "image-omitted", ALL),
    ("an image without bytes", user("q", FilePart(media_type="image/png", blob=BLOB)), "image-unavailable", ALL),
    (
        "an image of a kind",
        user("q", image(b"\0\0\0\x18ftypheic", "image/heic")),
        "image-unsupported",
        ALL - {"gemini"},
    ),
    (
        "an image of a kind",
        user("q", image(b"GIF89a\1\0\1\0", "image/gif")),
        "image-unsupported",
        frozenset({"gemini"}),
    ),
    ("a file", user("q", ODD_FILE), "file-unsupported", ALL),
    (
        "a file of a result",
        assistant(call("c1", result("r", ODD_FILE))),
        "file-unsupported",
        ALL,
    ),
    ("an image that the model made", assistant("a", image()), "assistant-file", ALL),
    ("citations", assistant(TextPart(text="a", citations=(Citation(document="d"),))), "citations", ALL),
    ("a source", assistant("a", SourceUrlPart(source_id="s", url="https://e")), "source", ALL),
    ("a source", assistant("a", SourceDocumentPart(source_id="s", media_type="a/b", title="t")), "source", ALL),
    ("data", user("q", DataPart(name="n", data=to_json(1))), "data", ALL),
    ("data of a result", assistant(call("c1", result("r", DataPart(name="n", data=to_json(1))))), "data", ALL),
    ("what is not known", assistant("a", UnknownPart(kind="k", data=to_json(1))), "unknown-part", ALL),
    ("reasoning outside of an answer", user("q", thinking("hm")), "unknown-part", ALL),
    ("a call outside of an answer", user("q", call("c1")), "unknown-part", ALL),
    ("reasoning of a result", assistant(call("c1", result("r", thinking("hm")))), "unknown-part", ALL),
    ("a tool of another provider's", assistant(SEARCH, "a"), "server-tool", ALL),
    ("a failure", assistant(call("c1", result("no", status="error"))), "result-status", NO_MARK),
    ("a refusal", assistant(call("c1", result("no", status="denied"))), "result-status", NO_MARK),
    ("a text of which there is a preview", user(TextPart(text="begins", blob=BLOB)), "preview-only", ALL),
    (
        "an output of which there is a preview",
        assistant(call("c1", result(TextPart(text="begins", blob=BLOB)))),
        "preview-only",
        ALL,
    ),
    (
        "an input of which there is a preview",
        assistant(
            ToolCallPart(tool_call_id="c1", tool_name="t", input_text="{", input_blob=BLOB, results=(result("r"),))
        ),
        "preview-only",
        ALL,
    ),
]


def strictly(name: str, message: Message) -> Any:
    return provider(name).to_request([user("q"), message, user("next")], asking(), strict=True)


@pytest.mark.parametrize("name", provider_names())
@pytest.mark.parametrize(("feature", "message", "kind", "where"), FEATURES)
def test_one_feature_is_one_loss(name: str, feature: str, message: Message, kind: str, where: frozenset[str]) -> None:
    losses = provider(name).to_request([user("q"), message, user("next")], asking()).losses
    if name in where:
        assert [(loss.kind, loss.message_id) for loss in losses] == [(kind, message.id)], feature
        with pytest.raises(LossyConversionError, match=kind) as caught:
            strictly(name, message)
        assert caught.value.losses == losses
        assert pickle.loads(pickle.dumps(losses)) == losses
    else:
        assert kind not in [loss.kind for loss in losses], feature


@pytest.mark.parametrize("name", provider_names())
def test_what_every_api_has_loses_nothing(name: str) -> None:
    history = [
        user("q", image()),
        assistant("a", call("c1", result("r", image())), call("c2", result("s"))),
        assistant("done"),
    ]
    assert provider(name).to_request(history, asking(), strict=True).losses == ()


def test_strict_names_the_first_and_counts_the_rest() -> None:
    answer = assistant("a", image(), UnknownPart(kind="k", data=to_json(1)), id="a1")
    with pytest.raises(LossyConversionError, match=r"message a1: unknown-part: .*, and 1 more"):
        strictly("anthropic", answer)
