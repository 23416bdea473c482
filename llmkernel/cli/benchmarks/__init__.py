"""The suites of `llmkernel bench`: each returns rows of plain data."""
