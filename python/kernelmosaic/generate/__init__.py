"""Makes tasks: parametrised families of operators with all views and right solutions.

A family (`families/`) draws a graph of operators (`ops/`). Writers turn one graph into a
reference program, a description, a specification and solutions in CUDA, so all of them are
about the same computation. Everything follows from (family, seed, number).
"""
