"""A stored session in any format, with what that cost: `export_session` and the table of formats.

Takes secrets out before anything is converted, where that is asked for. Commands and the server are thin over this.
"""

from turnlog.exports.formats import FORMATS, Format
from turnlog.exports.session import Export, export_session

__all__ = ["FORMATS", "Export", "Format", "export_session"]
