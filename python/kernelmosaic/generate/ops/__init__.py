"""Operators: what each computes, in torch, CUDA, mathematics and words."""
