"""`studio`: a page to paint on, and to steer while it dries."""
