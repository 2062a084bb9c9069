"""The API's addresses, one module a concept; each is a thin function over one question of the store."""

from turnlog.server.routes import (
    blobs,
    chat,
    events,
    exports,
    files,
    hooks,
    inventory,
    messages,
    runs,
    search,
    sessions,
    status,
    tool_calls,
    ui_messages,
    usage,
    windows,
)

ROUTERS = (
    status.router,
    events.router,
    sessions.router,
    windows.router,
    ui_messages.router,
    chat.router,
    exports.router,
    messages.router,
    tool_calls.router,
    files.router,
    blobs.router,
    search.router,
    usage.router,
    runs.router,
    inventory.router,
    hooks.router,
)
