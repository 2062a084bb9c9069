"""The models of clients, made of the schemas of the whole API of servers and hubs (`make schema`)."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI

from turnlog.hub.app import BODIES
from turnlog.hub.routes import ROUTERS as HUB_ROUTERS
from turnlog.server import openapi
from turnlog.server.app import new_app
from turnlog.server.routes import ROUTERS
from turnlog.server.routes.router import add_routes
from turnlog.server.swift import swift_types
from turnlog.server.typescript import schema_types

TYPESCRIPT: Final = "typescript/src/models.ts"
SWIFT: Final = "swift/Sources/Turnlog/Models.swift"


def schemas() -> Mapping[str, Mapping[str, Any]]:
    """OpenAPI's `components.schemas` of servers and hubs, without a store."""

    @asynccontextmanager
    async def no_lifespan(app: FastAPI) -> AsyncGenerator[None]:
        yield

    app = new_app(no_lifespan, "turnlog hub")
    add_routes(app, (*ROUTERS, *HUB_ROUTERS))
    openapi.describe_responses(app, BODIES)
    return app.openapi()["components"]["schemas"]


def models() -> dict[str, str]:
    """File below `clients` -> its text."""
    found = schemas()
    return {TYPESCRIPT: schema_types(found), SWIFT: swift_types(found)}


def main() -> None:
    """Write the models below the folder that is given."""
    for name, text in models().items():
        path = Path(sys.argv[1]) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
