"""A session as one HTML file that asks no network and opens fast however long it is: `to_html`.

Text of a log is escaped, never markup. `blocks` renders a conversation, `document` puts the blocks into a
page, `page.css` and `page.js` are its looks and its behaviour.
"""

from turnlog.formats.html.page import HtmlConversation, to_html

__all__ = ["HtmlConversation", "to_html"]
