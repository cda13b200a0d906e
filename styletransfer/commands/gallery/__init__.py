"""`gallery`: a page and a contact sheet to choose a picture from."""
