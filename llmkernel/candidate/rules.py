"""Static rules: what a candidate may not hold, whatever it computes.

Rules look at tokens, so comments and strings do not count, and at the bodies of macros. They are the first
fence, not the last: a candidate that passes them still runs only in the evaluation worker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module

from llmkernel.candidate.cxx_declarations import Declaration, declarations
from llmkernel.candidate.lexer import CxxToken, expand_macros, tokenize
from llmkernel.errors import RejectedError

# Written kernels have some hundred lines; a reply that repeats itself for ever shall not keep the parsers busy.
MAX_CHARACTERS = 1_000_000


@dataclass(frozen=True)
class Finding:
    """Where a rule is broken.

    Attributes
    ----------
    line : int
        1-based.
    what : str
        What stands there, one sentence.
    """

    line: int
    what: str


class Source:
    """A `.cu` file as rules look at it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.raw = tokenize(text)

    @cached_property
    def directives(self) -> list[CxxToken]:
        """Preprocessor lines."""
        return [t for t in self.raw if t.kind == "directive"]

    @cached_property
    def tokens(self) -> list[CxxToken]:
        """Code with the file's own object-like macros expanded, then the bodies of all its macros."""
        code = [t for t in expand_macros(self.raw) if t.kind != "directive"]
        for directive in self.directives:
            match = re.match(r"#\s*define\s+\w+(?:\([^)]*\))?(.*)", directive.text, re.DOTALL)
            if match:
                # A semicolon keeps a macro's body apart from what stands before it.
                code.append(CxxToken("symbol", ";", directive.line, 1))
                code.extend(CxxToken(t.kind, t.text, directive.line, t.column) for t in tokenize(match[1]))
        return code

    @cached_property
    def declarations(self) -> list[Declaration]:
        """Declarations outside function bodies."""
        return list(declarations(self.text))

    def calls(self) -> Iterator[tuple[CxxToken, str, str]]:
        """Yield every name before a parenthesis with the two tokens before it."""
        tokens = self.tokens
        for i, token in enumerate(tokens[:-1]):
            if token.kind == "name" and tokens[i + 1].text == "(":
                yield token, tokens[i - 1].text if i else "", tokens[i - 2].text if i > 1 else ""


def words(text: str) -> frozenset[str]:
    """Return the words of `text`, for the lists that rules hold."""
    return frozenset(text.split())


Find = Callable[[Source], Iterator[Finding]]


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes
    ----------
    name : str
        Short, in kebab case.
    reason : str
        Why the rule is there, one sentence.
    next_step : str
        What to write instead.
    find : callable
        Yields every place where the rule is broken.
    """

    name: str
    reason: str
    next_step: str
    find: Find


RULES: dict[str, Rule] = {}
# These fill the registry; their order is the order in which rules are asked.
_MODULES = ("host_rules", "preprocessor_rules", "assembly_rules", "clock_rules", "waiting_rules")


def rule(name: str, reason: str, next_step: str) -> Callable[[Find], Find]:
    """Register the decorated function as the rule `name`."""

    def register(find: Find) -> Find:
        RULES[name] = Rule(name, reason, next_step, find)
        return find

    return register


def all_rules() -> tuple[Rule, ...]:
    """Return the rules in the order in which they are asked, whoever imported their modules first."""
    for module in _MODULES:
        import_module(f"llmkernel.candidate.{module}")
    return tuple(sorted(RULES.values(), key=lambda r: _MODULES.index(r.find.__module__.rpartition(".")[2])))


def check_rules(source: str) -> None:
    """Check a `.cu` file against every rule.

    Raises
    ------
    llmkernel.errors.RejectedError
        For the first rule that is broken, with its name and line.
    """
    if len(source) > MAX_CHARACTERS:
        raise RejectedError(
            f"The source has {len(source)} characters.",
            rule_name="length",
            rule=f"length: a candidate has at most {MAX_CHARACTERS} characters",
            next_step="Leave out tables and copies that the kernel can do without.",
        )
    parsed = Source(source)
    lines = source.split("\n")
    for each in all_rules():
        for finding in each.find(parsed):
            text = lines[finding.line - 1].strip() if 0 < finding.line <= len(lines) else ""
            raise RejectedError(
                finding.what,
                rule_name=each.name,
                line=finding.line,
                rule=f"{each.name}: {each.reason}",
                received=f"line {finding.line}: {text[:120]}" if text else None,
                next_step=each.next_step,
            )
