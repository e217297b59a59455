"""What exports of jobs say: correctness, fast_p, pass@k, and whether two jobs differ."""
