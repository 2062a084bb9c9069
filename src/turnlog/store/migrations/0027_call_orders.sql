-- Messages whose copies number their calls differently. The order is that of the original, which is decided anew when a
-- session with such a message changes (store/reconcile/call_orders.py). Nearly always empty.
CREATE TABLE call_orders (message_key INTEGER PRIMARY KEY REFERENCES messages (key) ON DELETE CASCADE) STRICT;
