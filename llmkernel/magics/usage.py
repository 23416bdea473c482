"""``%llm_usage``: what the notebook's requests took, in tokens and in money."""

from __future__ import annotations

from IPython.core.magic import Magics, line_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument

from llmkernel.config import get_config
from llmkernel.magics.declaring import declare
from llmkernel.magics.parsing import parse_line

USAGE_ARGUMENTS = (argument("--reset", action="store_true", help="Count anew; the budget begins anew too."),)


@magics_class
class UsageMagics(Magics):  # type: ignore[misc]
    """Holds ``%llm_usage``."""

    @declare("llm_usage", "llm_usage [--reset]", USAGE_ARGUMENTS)
    @no_var_expand  # type: ignore[untyped-decorator]
    @line_magic  # type: ignore[untyped-decorator]
    def llm_usage(self, line: str) -> None:
        """Show what was asked of providers since the kernel started: tokens, and money where prices are known.

        Kernels that were replayed from their records took nothing and are not in the table.

            %llm_usage
            %llm_usage --reset
        """
        arguments = parse_line(self.llm_usage, line, prefix="%")
        from llmkernel.providers.usage import LEDGER

        if arguments.reset:
            LEDGER.reset()
        from llmkernel.display.usage import usage_bundle

        budget = get_config(self.shell).notebook_budget_usd
        self.shell.display_pub.publish(usage_bundle(LEDGER, budget))
