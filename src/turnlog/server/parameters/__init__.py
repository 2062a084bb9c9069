"""What requests may ask: one pydantic model a query, which is also what OpenAPI says about it.

Unknown parameters are errors, since a misspelt filter that is ignored would show too much. Page sizes are the
exception: a size that makes no sense is the default, and one that is too large the most there is (C-b).
"""
