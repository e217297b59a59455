"""KernelMosaic's Python package: task generator, scripted teacher, curation, client.

Needs Python 3.9 and nothing else, except where a module says so.
"""
