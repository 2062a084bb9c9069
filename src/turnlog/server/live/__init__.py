"""Changes as they happen: what changed in the store, as events for browsers, each made once however many listen."""
