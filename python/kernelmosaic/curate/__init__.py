"""Choosing tasks: what they are about, which are alike, which must stay out.

Needs numpy beside the standard library.
"""
