"""What writes rows. `batch.Batch` is what one transaction writes; the other modules each write one kind of row."""
