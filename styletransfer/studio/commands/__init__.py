"""The command of the studio: its settings, and a function that starts the server."""
