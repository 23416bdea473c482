"""`python -m llmkernel.evaluation.worker DEVICE`: the worker's entry point."""

from __future__ import annotations

from llmkernel.evaluation.worker.server import main

if __name__ == "__main__":
    main()
