"""The losses of a picture and their gradient, for the whole picture at once or tile by tile."""
