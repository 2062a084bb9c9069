"""What readings bring -> rows. `writer.Batch` is what one transaction writes; the others each write one kind of row."""
