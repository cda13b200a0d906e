"""The command of films: its settings, and a function that imports no torch before it is called."""
