"""What writes rows. `batch.Batch` is what one transaction writes; `native` are sessions that no log tells of."""
