"""What a run needs of memory, what is free, and how the one is made to fit the other."""
