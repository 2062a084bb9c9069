"""What is asked of a store, by what it is about. `store.base.Store` is all of it; `store.sqlite` has the same rooms."""
