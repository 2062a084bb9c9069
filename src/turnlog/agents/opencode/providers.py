"""What a provider needs to take a part back: OpenCode keeps it in the part's `metadata`, by the provider's name."""

from __future__ import annotations

from turnlog.agents.opencode.rows import object_of
from turnlog.model import ProviderData

NAMES = frozenset(
    {
        "amazon-bedrock",
        "anthropic",
        "azure",
        "bedrock",
        "copilot",
        "deepseek",
        "gateway",
        "google",
        "googleVertex",
        "groq",
        "mistral",
        "openai",
        "openaiCompatible",
        "openrouter",
        "vertex",
        "xai",
    }
)
"""Names that the AI SDK's providers use. Any other key whose value is an object is a provider's too."""

_OWN = frozenset({"compaction_continue", "providerExecuted", "interrupted", "title", "source"})


def provider_of(metadata: object, model: str | None) -> ProviderData | None:
    """The first provider's object in a part's metadata; None where there is none with anything in it."""
    found = object_of(metadata)
    for name in sorted(found, key=lambda name: (name not in NAMES, name)):
        opaque = object_of(found[name])
        if name not in _OWN and any(opaque.values()):
            return ProviderData(name=name, model=model, opaque=opaque)
    return None
