"""A session as one HTML file that asks no network and opens fast however long it is: `to_html`.

What was said is escaped text, never markup. `blocks` makes the pieces of a conversation, `document` puts them into a
page, `page.css` and `page.js` are its looks and its behaviour.
"""

from turnlog.formats.html.blocks import Conversation
from turnlog.formats.html.document import to_html

__all__ = ["Conversation", "to_html"]
