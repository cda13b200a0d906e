"""Lessons about `backward`: who calls it, what it is given, and whether its result is right.

`compare`, `explain` and the doctor `gradcheck` look at the loss modes and at the reader's own code.
No other command needs this room to paint a picture.
"""
