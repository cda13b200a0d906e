"""One module per command; no command imports another one."""
