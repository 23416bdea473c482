"""What an option of a magic can be given: providers, models, efforts, devices, names of the notebook."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from llmkernel.config import LLMKernel, get_config
from llmkernel.errors import LLMKernelError
from llmkernel.magics.kernel_names import kernel_names
from llmkernel.magics.namespace import is_array, is_reference, user_names

if TYPE_CHECKING:
    from llmkernel.providers.models import Model

# Of those that the compilers know, the ones that people have; any other can be typed.
ARCHITECTURES = (
    "sm_75",
    "sm_80",
    "sm_86",
    "sm_89",
    "sm_90",
    "sm_90a",
    "sm_100",
    "sm_100a",
    "sm_120",
    "sm_120a",
)

Candidates = Iterable[tuple[str, str]]


class ValueCompleter:
    """Knows the values of options.

    Parameters
    ----------
    ipython : InteractiveShell
    """

    def __init__(self, ipython: Any) -> None:
        self._ipython = ipython

    def of(self, action: argparse.Action, word: str, given: Mapping[str, str]) -> Candidates:
        """Return kind and text of each value.

        Parameters
        ----------
        action : argparse.Action
            The option or positional argument that the value is for.
        word : str
            What stands there so far.
        given : mapping
            What the line gives elsewhere: values by option or metavar, such as ``--provider`` or ``REFERENCE``.
        """
        if action.choices is not None:
            return [("keyword", str(choice)) for choice in action.choices]
        if action.dest in ("baseline", "reference"):
            return self._callables(word)
        namespace = self._ipython.user_ns
        if action.dest == "inputs":
            return [("instance", name) for name in user_names(namespace, is_array)]
        if action.dest == "context":
            return [("instance", name) for name in user_names(namespace, lambda _: True)]
        if action.dest == "question":  # whoever asks means the notebook's arrays and functions
            names = (
                user_names(namespace, lambda value: is_array(value) or is_reference(value)) if word else []
            )
            return [("instance", name) for name in names]
        if action.dest == "kernel":
            return [("instance", name) for name in kernel_names(self._ipython)]
        return [("keyword", value) for value in self.words(action.dest, word, given)]

    def words(self, dest: str, word: str, given: Mapping[str, str]) -> list[str]:
        """Return the values of an option that the notebook's variables have no part in."""
        if dest == "name":
            reference = given.get("REFERENCE") or given.get("--from")
            return [f"{reference.rpartition('.')[2]}_cuda"] if reference else []
        if dest == "provider":
            from llmkernel.providers.registry import available_providers

            return list(available_providers())
        if dest == "model":
            return [model.id for model in self._models(given)]
        if dest == "effort":
            return list(dict.fromkeys(effort for model in self._models(given) for effort in model.efforts))
        if dest == "arch":
            return list(ARCHITECTURES)
        if dest == "checks":
            from llmkernel.evaluation.tools import TOOLS

            return [tool for tool in (*TOOLS, "all") if tool not in word.split(",")]
        return self._default(dest)

    def configured(self, name: str) -> list[str]:
        """Return what ``LLMKernel.name`` can be set to, as Python writes it."""
        trait = LLMKernel.class_traits().get(name)
        if trait is None:
            return []
        kind = type(trait).__name__
        if kind == "Bool":
            return ["True", "False"]
        values = list(trait.values) if kind == "Enum" else self.words(name, "", {})
        return [repr(value) if kind in ("Enum", "Unicode") else value for value in values]

    def _models(self, given: Mapping[str, str]) -> list[Model]:
        from llmkernel.providers.models import load_models

        try:
            table = load_models()
        except LLMKernelError:  # the cell will say what is wrong with the user's file
            return []
        if (named := given.get("--model")) is not None and (model := table.find(named)) is not None:
            return [model]
        provider = given.get("--provider") or self._config().provider
        models = [m for m in table.models.values() if not provider or m.provider == provider]
        first = set(table.defaults.values())
        return sorted(models, key=lambda model: model.id not in first)

    def _default(self, dest: str) -> list[str]:
        value = getattr(self._config(), dest, None)
        return [str(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []

    def _config(self) -> LLMKernel:
        try:
            return get_config(self._ipython)
        except LLMKernelError:
            return LLMKernel()

    def _callables(self, word: str) -> Candidates:
        owner, dot, last = word.rpartition(".")
        if not dot:
            return [("function", name) for name in user_names(self._ipython.user_ns, is_reference)]
        value = self._ipython.user_ns.get(owner)
        names = dir(value) if value is not None else []
        return [("function", f"{owner}.{n}") for n in names if last.startswith("_") or not n.startswith("_")]
