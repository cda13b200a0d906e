"""The commands of style networks, a file each: settings, and a function without torch yet."""
