"""Judging candidates: the worker, the checks, the tolerance, the timing, the report."""
