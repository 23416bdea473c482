"""Fuzzing of everything that reads what others wrote: by Hypothesis in the suite, by atheris with coverage on demand."""
