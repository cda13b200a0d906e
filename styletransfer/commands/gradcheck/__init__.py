"""Every hand-written backward against measured slopes."""
