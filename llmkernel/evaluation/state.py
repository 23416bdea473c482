"""State that outlives a launch: `__device__` variables and `static` ones.

A kernel can keep a result and replay it, or count its launches and misbehave once nobody looks (research: AgentKernelArena
pull requests 112 and 113; KernelBench's cached results). The draws of a verification are few launches; a candidate that
can remember is therefore run many times in a row over one load of its module, on one draw and then on another.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from llmkernel.candidate.lexer import CxxToken, tokenize
from llmkernel.evaluation.draw import Draw
from llmkernel.evaluation.worker.harness import payload_bytes

# More than the launches of a verification, and than the warm-up and first samples of a timing.
REPEATS = 128
_MEMORY_BYTES = 256 << 20
_KEEPING = frozenset(("__device__", "__managed__", "static"))
_LASTING_ONLY_HERE = frozenset(
    ("const", "constexpr", "__constant__", "__shared__", "struct", "class", "union", "enum")
)
_ALIGNING = frozenset(("__align__", "alignas", "__attribute__", "__declspec"))


def keeps_state(source: str) -> bool:
    """Whether the source declares a variable that outlives a launch and can be written.

    A declaration that is misread as one costs a few more runs and nothing else.
    """
    tokens = [t for t in tokenize(source) if t.kind != "directive"]
    return any(t.text in _KEEPING and _declares_variable(tokens, i) for i, t in enumerate(tokens))


def _declares_variable(tokens: Sequence[CxxToken], at: int) -> bool:
    before = takewhile(lambda t: t.text not in (";", "{", "}", ")"), reversed(tokens[:at]))
    words = {t.text for t in before}
    i = at + 1
    while i < len(tokens):
        text = tokens[i].text
        if text in _ALIGNING:
            i = _after_brackets(tokens, i + 1)
            continue
        if text in ("(", "{", "}"):
            return False
        if text in (";", "=", "["):
            return not words & _LASTING_ONLY_HERE
        words.add(text)
        i += 1
    return False


def _after_brackets(tokens: Sequence[CxxToken], start: int) -> int:
    depth = 0
    for i in range(start, len(tokens)):
        depth += {"(": 1, ")": -1}.get(tokens[i].text, 0)
        if depth <= 0:
            return i + 1
    return len(tokens)


def affordable_repeats(draw: Draw) -> int:
    """Return how often a draw is repeated, so that all its copies fit into a bounded amount of memory."""
    total = sum(payload_bytes(b) for b in draw.plan.buffers)
    return int(min(REPEATS, max(4, _MEMORY_BYTES // max(1, 2 * total))))
