"""The page's types of what only a hub answers, made of the hub's own schemas (`make schema`)."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI

from turnlog.hub.app import BODIES
from turnlog.hub.routes import ROUTERS
from turnlog.server import openapi
from turnlog.server.app import create_app, new_app
from turnlog.server.routes.router import add_routes
from turnlog.server.typescript import schema_types


@asynccontextmanager
async def _no_lifespan(app: FastAPI) -> AsyncGenerator[None]:
    yield


def main() -> None:
    """Write the types of this version's hub, without those of every server, to the standard output."""
    app = new_app(_no_lifespan)
    add_routes(app, ROUTERS)
    openapi.describe_responses(app, BODIES)
    with tempfile.TemporaryDirectory() as folder:
        shared = create_app(Path(folder) / "turnlog.db").openapi()["components"]["schemas"]
    schemas = app.openapi()["components"]["schemas"]
    sys.stdout.write(
        schema_types({name: schema for name, schema in schemas.items() if name not in shared}, __spec__.name)
    )


if __name__ == "__main__":
    main()
