"""The rule against results that depend on when and where a kernel runs.

A kernel that asks the time is right nearly always and wrong for one launch in many thousands, or on one multiprocessor that
small grids never reach. No number of runs finds that; its source says it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from llmkernel.candidate.assembly_rules import ASSEMBLY, spoken_at
from llmkernel.candidate.rules import Finding, Source, rule, words

_ALWAYS = words(
    """
    clock64 __clock __clock64 __globaltimer __globaltimer_lo __globaltimer_hi __smid __nsmid __warpid __gridid
    __nvvm_read_ptx_sreg_clock __nvvm_read_ptx_sreg_clock64 __nvvm_read_ptx_sreg_globaltimer
    __nvvm_read_ptx_sreg_smid __nvvm_read_ptx_sreg_nsmid __nvvm_read_ptx_sreg_warpid
    system_clock steady_clock high_resolution_clock
    """
)
# %warpid and %gridid too: the one may change while a thread runs, the other counts launches (PTX ISA, special registers).
_REGISTER = re.compile(
    r"%(?:clock(?:64|_hi)?|globaltimer(?:_lo|_hi)?|n?smid|n?warpid|gridid|pm\d+(?:_64)?)\b"
)


@rule(
    "clock",
    "a result depends on the inputs alone, so a kernel asks neither the time nor the place where it runs",
    "Leave it out. To wait, use `__nanosleep`; to number blocks, blockIdx or an atomic counter.",
)
def clock(source: Source) -> Iterator[Finding]:
    """Clocks, and registers that say which multiprocessor, warp slot or launch this is."""
    tokens = source.tokens
    for i, token in enumerate(tokens):
        before = tokens[i - 1].text if i else ""
        if token.kind == "name" and token.text in _ALWAYS and before not in (".", "->"):
            yield Finding(token.line, f"`{token.text}` is asked.")
        if token.text == "clock" and _is_used_as_function(source, i):
            yield Finding(token.line, "`clock` is asked.")
        if token.text in ASSEMBLY:
            match = _REGISTER.search(spoken_at(tokens, i))
            if match:
                yield Finding(token.line, f"The register `{match.group()}` is read.")


def _is_used_as_function(source: Source, at: int) -> bool:
    """Whether `clock` is called or its address taken; a variable may have that name."""
    tokens = source.tokens
    before = tokens[at - 1].text if at else ""
    after = tokens[at + 1].text if at + 1 < len(tokens) else ""
    if after == "(":
        # `int clock(3)` declares a variable, `return clock()` calls.
        is_declared = at > 0 and tokens[at - 1].kind == "name" and before != "return"
        return before not in (".", "->") and not (is_declared and tokens[at + 2].text != ")")
    is_variable = any(
        t.text == "clock" and i and (tokens[i - 1].kind == "name" or tokens[i - 1].text in ("*", "&"))
        for i, t in enumerate(tokens[:at])
    )
    return before in ("=", "&", "(", ",") and after in (";", ")", ",") and not is_variable
