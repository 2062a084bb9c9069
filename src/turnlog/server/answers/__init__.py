"""What the server says: one struct an answer, encoded by msgspec and described in OpenAPI under the same name.

Fields of an answer are always there (None is unknown); the model's own values inside it leave out their defaults.
"""
