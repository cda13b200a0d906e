"""The commands for finished runs, one per file; torch is imported only when a command runs."""
