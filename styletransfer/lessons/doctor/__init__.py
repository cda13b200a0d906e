"""The doctor examines a Function, a module or a function in a file that the user has written."""
