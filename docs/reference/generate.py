"""Writes the reference pages that are taken from the code: ``python docs/reference/generate.py``.

A test compares the pages with what this would write.
"""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path
from typing import Any

from IPython.core.magic_arguments import argument_group
from traitlets import Bool, Enum, Float, Int, Unicode

from llmkernel.config import LLMKernel
from llmkernel.magics.ask import AskMagics
from llmkernel.magics.ask_options import ASK_ARGUMENTS
from llmkernel.magics.cuda import CudaMagics
from llmkernel.magics.cuda_from import CudaFromMagics
from llmkernel.magics.kernels import KERNELS_ARGUMENTS, KernelsMagics
from llmkernel.magics.options import CUDA_ARGUMENTS, CUDA_FROM_ARGUMENTS
from llmkernel.magics.parsing import options_of, parser_of, positionals_of
from llmkernel.magics.usage import USAGE_ARGUMENTS, UsageMagics

HERE = Path(__file__).parent

_CONFIGURATION = """\
# Configuration

Every option of the magics has a default that can be configured, in this order of precedence:

1. on the cell's own line: `%%cuda_from softmax --attempts 2`;
2. for the session: `%config LLMKernel.attempts = 2` (`%config LLMKernel` lists all);
3. when the kernel is started: `--LLMKernel.attempts=2` at the end of `argv` in `kernel.json`;
4. in a file: `c.LLMKernel.attempts = 2` in `ipython_kernel_config.py` (or `ipython_config.py`), in
   the directory that `ipython locate profile` prints.

A bad value in a file does not stop the kernel; the first cell that needs it says what is wrong.
Keys are never configuration: they come from the environment, the system's keyring or a key file
(`llmkernel doctor` says which were found).

| option | type | default | meaning |
| --- | --- | --- | --- |
"""

_CUDA_FROM_MORE = """
## Reference and inputs

REFERENCE is a name, or names joined by dots: `softmax`, `np.linalg.norm`, `model.forward`,
a `torch.nn.Module` object, a lambda that was given a name. It is not an expression.

The example inputs decide names, dtypes and shapes. By default they are the notebook's variables that are
called like the reference's parameters. A parameter with a default keeps it, unless its variable is an array
or a number. `--inputs` is written like a call:

```
%%cuda_from layer_norm --inputs "activations[:512], weight=w, bias=b, eps=1e-6" --shapes "M=1023;M=1"
One row a warp. Rows are 4096 long nearly always.
```

## Writing the line

- The body is sent as it was typed: braces, `$`, quotes and blank lines are kept, nothing is expanded.
- A value that holds blanks is quoted. One that begins with a dash needs an equals sign: `--model=-x`.
- The magic is the first line of its cell; only blank lines may stand above it.
- A cell that fails raises one readable error, so that Run All stops; nothing is assigned, the report stays.
"""

_CUDA_MORE = """
The body is taken as it was typed, so the lines in messages are those of the cell without its first line. Change it and
run the cell again: it is judged again. A candidate that a provider wrote can be edited the same way, in a `%%cuda`
cell or as `kernels/NAME/kernel.cu`; the next run of the cell that asked for it verifies what was edited.

Without `--from` the kernel is [unverified](../guide/kernels.md#without-a-reference); `--shapes`, `--tolerance` and
`--baseline` need a reference.

[`%%cuda_from`](cuda_from.md) says more about REFERENCE and inputs.
"""

_KERNELS_MORE = """
[Looking after kernels](../guide/kernels.md) shows them at work.
"""

_ASK_MORE = """
## Writing the line

- Options stand first. The question begins at the first word that is no option, and is sent as it stands: apostrophes,
  question marks, braces, `$` and quotes mean nothing here. Behind a lone `--` everything is question.
- `%ask` takes one line, anywhere in a cell; `%%ask` is the first line of its cell and takes the lines below it too.
- `%ask` alone, after a cell that failed, asks why it failed.

[Asking](../guide/asking.md) says what is sent, and what becomes of the answer.
"""


def configuration_page() -> str:
    """Return the page on `LLMKernel`'s options."""
    rows = [
        f"| `{name}` | {_type(trait)} | `{trait.default_value!r}` | {_cell(trait.help)} |"
        for name, trait in sorted(LLMKernel.class_own_traits(config=True).items())
    ]
    return _CONFIGURATION + "\n".join(rows) + "\n"


def magic_page(magic: Any, arguments: tuple[Any, ...], more: str = "", prefix: str = "%%") -> str:
    """Return the page on a magic: its docstring, its arguments, then `more`."""
    parser = parser_of(magic)
    about = inspect.cleandoc(parser.description or "")
    prose, example = about.split("\n\n    ", 1)
    lines = [f"# `{prefix}{parser.prog}`", "", prose, "", "```", inspect.cleandoc("    " + example), "```"]
    lines += ["", "## Arguments", "", "| argument | meaning |", "| --- | --- |"]
    options = options_of(parser) | {action.dest: action for action in positionals_of(parser)}
    for declared in arguments:
        if isinstance(declared, argument_group):
            lines += ["", f"## Options: {declared.args[0]}", "", "| option | meaning |", "| --- | --- |"]
        else:
            action = options[declared.args[0]]
            lines.append(f"| {_form(action)} | {_cell(action.help)}{_default(action)} |")
    return "\n".join(lines) + "\n" + more


def _form(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{action.metavar or action.dest.upper()}`"
    option = action.option_strings[0]
    if action.nargs == 0:
        return f"`{option}`"
    value = "|".join(map(str, action.choices)) if action.choices else action.metavar or action.dest.upper()
    return _cell(f"`{option} {value}`")


def _default(action: argparse.Action) -> str:
    trait = LLMKernel.class_own_traits().get(action.dest)
    if trait is None or trait.default_value in (None, False):
        return ""
    return f" Default: `{trait.default_value}`."


def _type(trait: Any) -> str:
    if isinstance(trait, Enum):
        return ", ".join(trait.values)
    return {Int: "whole number", Float: "number", Unicode: "text", Bool: "True or False"}[type(trait)]


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


PAGES = {
    "configuration.md": configuration_page,
    "cuda_from.md": lambda: magic_page(CudaFromMagics.cuda_from, CUDA_FROM_ARGUMENTS, _CUDA_FROM_MORE),
    "kernels.md": lambda: magic_page(KernelsMagics.kernels, KERNELS_ARGUMENTS, _KERNELS_MORE, "%"),
    "ask.md": lambda: magic_page(AskMagics.ask, ASK_ARGUMENTS, _ASK_MORE, prefix="%"),
    "llm_usage.md": lambda: magic_page(UsageMagics.llm_usage, USAGE_ARGUMENTS, prefix="%"),
    "cuda.md": lambda: magic_page(CudaMagics.cuda, CUDA_ARGUMENTS, _CUDA_MORE),
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), encoding="utf-8")
