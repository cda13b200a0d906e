"""The command `apply`."""
