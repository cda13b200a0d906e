"""`film`: a film painted by optimisation, without flicker."""
