"""Results: tables on disk and in memory."""
