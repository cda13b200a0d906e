"""The commands for finished runs, a file each: settings, and a function; none imports torch yet."""
