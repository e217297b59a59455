"""The calls of the samples that run: one case per run=NAME, references in torch."""

import sample_cases_dense  # noqa: F401
import sample_cases_files  # noqa: F401
import sample_cases_flat  # noqa: F401
import sample_cases_gpu  # noqa: F401
import sample_cases_rows  # noqa: F401
