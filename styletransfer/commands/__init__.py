"""One room per command of the console; none knows another."""
