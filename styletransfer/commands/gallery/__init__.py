"""`gallery`: a contact sheet and a table of runs."""
