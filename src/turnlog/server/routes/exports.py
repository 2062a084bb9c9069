"""`/api/sessions/{id}/export`: a session as a document, in the formats of `turnlog export`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from turnlog.errors import ConversionError
from turnlog.exports import export_session
from turnlog.server.context import ContextOf
from turnlog.server.errors import InvalidParameterError
from turnlog.server.openapi import BYTES
from turnlog.server.parameters.sessions import ExportQuery

router = APIRouter(prefix="/sessions/{session_id}", default_response_class=Response, tags=["sessions"])


@router.get("/export", responses=BYTES)
def get_export(context: ContextOf, session_id: str, query: Annotated[ExportQuery, Query()]) -> Response:
    """The document as a download; headers count what was lost, repaired (kinds) and masked (secrets)."""
    try:
        made = export_session(context.store, session_id, query.as_, redact=query.redact, model=query.model)
    except ConversionError as error:
        raise InvalidParameterError("model", str(error)) from error
    headers = {
        "Cache-Control": "private, no-cache",
        "Content-Disposition": f'attachment; filename="session.{made.format.extension}"',
        "X-Turnlog-Losses": str(len(made.losses)),
        "X-Turnlog-Repairs": str(len(made.repairs)),
        "X-Turnlog-Masked": str(sum(found.times for found in made.masked)),
    }
    return Response(made.data, headers=headers, media_type=made.format.media_type)
