"""`gallery`: a page to choose a picture from."""
