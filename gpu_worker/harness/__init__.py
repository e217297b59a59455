"""The Python side of an evaluation: a zygote with torch imported, and the roles it forks.

Everything here runs as the untrusted side: the daemon takes no verdict from it, only
values, which it compares itself.
"""
