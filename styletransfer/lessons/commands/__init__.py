"""The commands of the lessons, a file each: settings, and a function; none imports torch yet."""
