"""The Jupyter protocol, by Jupyter's own tests for kernels."""

from __future__ import annotations

import jupyter_kernel_test
import pytest


@pytest.mark.usefixtures("jupyter")
class KernelProtocolTests(jupyter_kernel_test.KernelTests):
    kernel_name = "llm-cuda"
    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('test', file=sys.stderr)"
    completion_samples = (
        {"text": "zi", "matches": {"zip"}},
        {"text": "%%cuda_fr", "matches": {"%%cuda_from"}},
        {"text": "%%cuda_from f --repl", "matches": {"--replay"}},
    )
    complete_code_samples = (
        "1",
        "print('hello, world')",
        "def f(x):\n  return x*2\n\n",
        "%%cuda_from f\nfast\n\n",
    )
    incomplete_code_samples = ("print('''hello", "def f(x):\n  x*2", "%%cuda_from f", "%%cuda_from f\nfast")
    invalid_code_samples = ("import = 7q",)
    code_page_something = "zip?"
    code_generate_error = "%%cuda_from nothing\nfast"
    code_execute_result = (
        {"code": "1+2+3", "result": "6"},
        {"code": "[n*n for n in range(1, 4)]", "result": "[1, 4, 9]"},
    )
    code_display_data = (
        {
            "code": "from IPython.display import HTML, display; display(HTML('<b>test</b>'))",
            "mime": "text/html",
        },
    )
    code_history_pattern = "1?2*"
    supported_history_operations = ("tail", "search")  # IPython counts a range's session in its own way
    code_inspect_sample = "zip"
    code_clear_output = "from IPython.display import clear_output; clear_output()"
