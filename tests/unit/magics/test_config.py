from __future__ import annotations

import pytest
from traitlets import TraitError
from traitlets.config import Config

from llmkernel.config import LLMKernel, get_config
from llmkernel.errors import ConfigurationError

from .conftest import make_shell


def loaded(config):
    shell = make_shell(config)
    shell.extension_manager.load_extension("llmkernel")
    return shell


def test_without_a_shell_the_defaults_hold():
    config = get_config()

    assert (config.attempts, config.device, config.replay, config.records_dir) == (
        4,
        "auto",
        "auto",
        "kernels",
    )
    assert config.provider is None


def test_a_configuration_file_sets_options():
    shell = loaded(Config({"LLMKernel": {"attempts": 2, "provider": "library", "tolerance": 1e-2}}))

    config = get_config(shell)
    assert (config.attempts, config.provider, config.tolerance) == (2, "library", 1e-2)


def test_a_bad_value_is_reported_by_the_first_cell_that_needs_it():
    shell = loaded(Config({"LLMKernel": {"attempts": "many"}}))

    with pytest.raises(ConfigurationError, match="attempts"):
        get_config(shell)
    assert shell.find_cell_magic("cuda_from")
    shell.extension_manager.unload_extension("llmkernel")


@pytest.mark.parametrize(
    "values",
    [
        {"attempts": 0},
        {"device": "gpu"},
        {"replay": "yes"},
        {"tolerance": 0.0},
        {"timeout": -1.0},
        {"target": float("nan")},
    ],
)
def test_values_out_of_range_are_refused(values):
    with pytest.raises(TraitError):
        LLMKernel(**values)


def test_every_option_is_configurable_and_explained():
    own = set(LLMKernel.class_own_traits())

    assert own == set(LLMKernel.class_own_traits(config=True))
    assert all(trait.help for trait in LLMKernel.class_own_traits().values())
