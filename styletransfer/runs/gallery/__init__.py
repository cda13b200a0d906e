"""The command `gallery`: writes a page with a contact sheet and a table of runs."""
