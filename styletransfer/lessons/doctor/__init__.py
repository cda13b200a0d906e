"""The doctor: examines a Function, a module or a function of the reader's own file."""
