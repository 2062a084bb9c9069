"""The API's addresses, one module a subject; each function answers from one method of the store."""

from turnlog.server.routes import (
    blobs,
    forgetting,
    live,
    messages,
    native,
    overview,
    projects,
    runs,
    search,
    sessions,
    sign_in,
    tasks,
    tool_calls,
    work,
)

SHARED = (
    overview.router,
    projects.router,
    tasks.router,
    live.router,
    sessions.router,
    forgetting.router,
    native.router,
    messages.router,
    tool_calls.router,
    blobs.router,
    search.router,
    runs.router,
    work.router,
)
"""What a hub answers too."""

ROUTERS = (*SHARED, work.local_router, live.hooks_router, sign_in.router)
