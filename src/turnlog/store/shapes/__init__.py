"""What is asked of a store and what it answers: filters, pages, and the values in them. `store.base` names them all."""
