"""The cell and line magics: thin faces on the Python API."""
