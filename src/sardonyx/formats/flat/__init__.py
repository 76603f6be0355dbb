"""FlatBuffers: schemas as tables, a reader that believes nothing of a file, and a writer driven by the same tables."""
