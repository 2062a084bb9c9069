"""Writing rows: `batch.Batch` writes what sync reads, `native` writes native sessions."""
