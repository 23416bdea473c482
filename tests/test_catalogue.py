"""Where each case of the catalogue of real-world failures is tested.

A (kernels that look right), B (compiling and launching) and C (notebooks, magics and replies) were collected from
issues and papers of other projects. Each names the tests that hold its right behaviour; a word in brackets is one of the
parameters of that test.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

_CHEATS = "unit/evaluation/test_cheats.py"
_OUTCOMES = "unit/evaluation/test_outcomes.py"
_WRONG = f"{_OUTCOMES}::test_a_wrong_candidate_gets_its_outcome"
_CRASHES = "notebooks/test_three_attempts.py::test_the_next_cell_still_reads_the_arrays"
_FAILURES = "unit/providers/test_failures.py"
_STREAMS = "unit/providers/test_streams.py"
_RULES = "unit/candidate/test_rules.py::test_what_is_refused"
_NVRTC = "unit/cuda_device/test_nvrtc.py"
_REDACTION = "unit/providers/test_redaction.py"
_SECRETS = "unit/synthesis/test_secrets.py"
_STOP = "kernel/test_interrupt.py"
_UNSENT = "unit/synthesis/test_nothing_is_sent.py"

CATALOGUE: dict[str, tuple[str, ...]] = {
    # ---- kernels that look right ----
    "A1 no-op over a reused buffer": (f"{_WRONG}[does nothing]", f"{_WRONG}[last element left out]"),
    "A2 zeroes its inputs": (f"{_WRONG}[changes an input]", f"{_OUTCOMES}::test_the_example_is_untouched"),
    "A3 zeros for a wide softmax": (
        "unit/evaluation/test_tolerance.py::test_zeros_fail_a_softmax_whose_every_value_is_tiny",
        f"{_WRONG}[zeros]",
    ),
    "A4 a constant for a mean": (
        f"{_CHEATS}::test_zeros_are_no_mean_of_normal_numbers",
        f"{_OUTCOMES}::test_a_reference_that_ignores_its_inputs_is_inconclusive",
    ),
    "A5 work on another stream": (f"{_RULES}[host-call]", f"{_RULES}[launch-in-code]"),
    "A6 a result replayed from a cache": (
        f"{_CHEATS}::test_a_result_kept_from_an_earlier_call_is_seen",
        "unit/cuda_device/test_device.py::test_samples_are_of_fresh_draws_and_outputs_belong_to_their_draw",
    ),
    "A7 honest in the check only": (
        f"{_CHEATS}::test_a_kernel_that_is_right_for_its_first_launches_is_not_accepted",
    ),
    "A9 faster than the memory": (
        f"{_CHEATS}::test_a_speed_up_is_only_said_where_it_was_measured",
        "unit/display/test_bundle.py::test_no_ratio_is_said_where_none_may_be",
    ),
    "A10 finds expected values, or fills with NaN": (
        f"{_CHEATS}::test_expected_values_never_reach_the_process_of_a_candidate",
        "unit/evaluation/test_tolerance.py::test_special_values_match_by_position",
    ),
    "A11 falls back to a library": (f"{_RULES}[python-code]", f"{_WRONG}[no kernel]", f"{_WRONG}[host code]"),
    "A12 half precision under float32": (
        f"{_OUTCOMES}::test_half_precision_under_a_float32_contract_is_named",
        "unit/evaluation/test_tolerance.py::test_half_precision_accumulation_fails_a_float32_contract",
    ),
    "A13 softmax without the maximum, masked rows": (
        f"{_CHEATS}::test_a_softmax_without_the_maximum_is_seen_with_its_first_bad_element",
        f"{_CHEATS}::test_rows_that_are_masked_altogether_follow_the_reference",
    ),
    "A14 sum of squares overflows": (f"{_CHEATS}::test_a_sum_of_squares_in_half_precision_overflows",),
    "A16 right at multiples of the tile": (
        f"{_CHEATS}::test_a_product_that_is_right_at_multiples_of_its_tile_only",
        f"{_WRONG}[right only at the example's size]",
    ),
    "A17 reads out of bounds": (f"{_WRONG}[read far away]", f"{_WRONG}[no bounds check]"),
    "A19 missing barrier": (
        f"{_OUTCOMES}::test_reductions_that_go_wrong[missing barrier]",
        f"{_OUTCOMES}::test_an_honest_candidate_passes[float atomics in any order]",
    ),
    "A21 more than 2^31 elements": (f"{_CHEATS}::test_what_was_not_tried_is_in_every_report",),
    "A22 wide loads of a shifted view": (
        f"{_CHEATS}::test_wide_loads_that_only_the_size_allows_meet_an_address_that_forbids_them",
        "unit/candidate/test_plan.py::test_an_offset_view_takes_the_unaligned_branch",
    ),
    "A24 too much shared memory": (
        "unit/candidate/test_plan.py::test_limits_are_checked_with_both_numbers",
        f"{_WRONG}[too many threads]",
    ),
    "A25 never ends": (f"{_WRONG}[never ends]", f"{_CRASHES}[endless loop]"),
    "A26 illegal address": (f"{_WRONG}[null pointer]", f"{_CRASHES}[illegal address]", f"{_CRASHES}[trap]"),
    "A27 a speed-up that is none": (
        f"{_CHEATS}::test_a_speed_up_is_only_said_where_it_was_measured",
        "unit/display/test_bundle.py::test_emulation_has_no_speed_of_light",
    ),
    # ---- compiling and launching ----
    "B1 headers": (
        f"{_RULES}[include]",
        f"{_NVRTC}::test_device_headers_compile",
        f"{_NVRTC}::test_cooperative_groups_and_cub_compile",
    ),
    "B2 no C linkage": (
        "unit/candidate/test_header_check.py::test_launches_that_name_nothing",
        f"{_NVRTC}::test_resources_are_those_of_each_instance",
    ),
    "B3 template kernels": (
        "unit/candidate/test_header_check.py::test_name_expressions_that_need_no_shapes",
        f"{_NVRTC}::test_resources_are_those_of_each_instance",
    ),
    "B4 scalars and dtypes of another width": (
        "unit/candidate/test_header_check.py::test_what_does_not_fit[is a float32 scalar]",
        "unit/candidate/test_binding.py::test_scalars_keep_their_value_or_are_refused",
        "unit/synthesis/test_generated_kernel.py::test_it_refuses_by_name_what_it_was_not_verified_for[dtype]",
    ),
    "B5 too few arguments": (
        "unit/candidate/test_header_check.py::test_what_does_not_fit[takes 1 arguments, the launch gives 0]",
        "unit/candidate/test_binding.py::test_the_number_of_arguments",
    ),
    "B6 strides": (
        "unit/synthesis/test_generated_kernel.py::test_it_refuses_by_name_what_it_was_not_verified_for[layout]",
        "unit/candidate/test_binding.py::test_strided_inputs_keep_their_strides",
        "unit/problem/test_reference.py::test_any_layout_of_a_plain_array_is_an_example",
    ),
    "B8 grid beyond the limit": (
        "unit/candidate/test_plan.py::test_limits_are_checked_with_both_numbers",
        "unit/cuda_device/test_launcher.py::test_limits_are_errors_with_the_line",
    ),
    "B9 dynamic shared memory": (
        "unit/cuda_device/test_launcher.py::test_large_shared_memory_cluster_and_cooperation_reach_the_driver",
        "unit/candidate/test_plan.py::test_limits_are_checked_with_both_numbers",
    ),
    "B10 half scalars": ("unit/cuda_device/test_launcher.py::test_floats_keep_every_bit[float16]",),
    "B11 complex numbers and structs by value": (
        "unit/candidate/test_header_check.py::test_what_fits[cuFloatComplex c]",
        "unit/candidate/test_header_check.py::test_what_does_not_fit[Pair k]",
    ),
    "B12 the caller's stream": (
        "unit/cuda_device/test_callers.py::test_torch_on_the_gpu_launches_without_copies_and_reuses_its_plan",
        "gpu/test_evaluation.py::test_a_torch_kernel_runs_on_the_callers_stream",
    ),
    "B14 compiler and GPU do not know each other": (
        "unit/cli/test_doctor.py::test_a_gpu_that_nvrtc_does_not_know",
        f"{_NVRTC}::test_a_gpu_newer_than_the_compiler_gets_code_that_the_driver_compiles",
        "unit/cuda_device/test_launcher.py::test_an_error_of_the_driver_carries_its_name",
    ),
    "B15 caches": (
        f"{_NVRTC}::test_a_changed_header_is_a_new_compilation",
        f"{_NVRTC}::test_a_damaged_cache_entry_is_compiled_again",
        f"{_NVRTC}::test_a_cache_that_cannot_be_written_is_replaced_by_a_temporary_one",
        "unit/cpu_device/test_compile.py::test_a_home_that_cannot_be_written",
        "unit/cpu_device/test_compile.py::test_parallel_compilations_of_one_source",
    ),
    "B17 denormals": (
        f"{_NVRTC}::test_denormals_and_division_are_ieee",
        "unit/library/test_kernels.py::test_denormals_are_kept",
    ),
    # ---- notebooks, magics and replies ----
    "C1 braces in the body": (
        "unit/magics/test_placement.py::test_any_body_is_taken_verbatim",
        "unit/prompts/test_build.py::test_the_intent_is_sent_verbatim",
    ),
    "C2 braces and dollars in the line": ("unit/magics/test_cuda_from.py::test_the_line_is_not_expanded",),
    "C3 no body": (
        "unit/magics/test_cuda_from.py::test_without_an_intent_nobody_is_asked",
        "kernel/test_session.py::test_no_intent_is_a_usage_error_that_stops_run_all",
    ),
    "C5 values that begin with a dash": (
        "unit/magics/test_parsing.py::test_a_value_with_a_leading_dash_needs_an_equals_sign",
    ),
    "C6 fences of every style": (
        "unit/candidate/test_reply.py::test_the_source_is_found",
        "unit/candidate/test_reply.py::test_an_unclosed_fence_sets_a_flag",
        "unit/candidate/test_reply.py::test_prose_and_fence_styles_do_not_matter",
    ),
    "C8 several blocks": (
        "unit/candidate/test_reply.py::test_what_was_taken_is_said",
        "unit/candidate/test_reply.py::test_two_candidates_are_not_chosen_from",
    ),
    "C10 cut off at the token limit": (
        "unit/synthesis/test_loop.py::test_a_truncated_reply_is_asked_for_again_with_a_larger_limit_and_never_compiled",
        "unit/synthesis/test_loop.py::test_a_reply_that_stays_truncated_is_rejected_not_compiled",
        f"{_STREAMS}::test_a_truncated_reply_says_so",
    ),
    "C11 refusal": (
        f"{_STREAMS}::test_claude_survives_a_refusal_whose_block_stops_without_a_start",
        f"{_STREAMS}::test_claude_names_the_category_of_a_refusal",
        "unit/synthesis/test_loop.py::test_a_refusal_is_not_repeated",
    ),
    "C12 overload inside a stream": (
        f"{_FAILURES}::test_an_overload_inside_the_stream_before_any_text_is_retried",
        f"{_FAILURES}::test_an_overload_after_text_keeps_the_text_and_is_not_retried",
    ),
    "C13 rate limit and quota": (
        f"{_FAILURES}::test_a_rate_limit_waits_as_long_as_asked_and_goes_on",
        f"{_FAILURES}::test_a_permanent_failure_has_its_class_and_is_not_retried[insufficient_quota]",
        "unit/providers/test_retry.py::test_an_interrupt_during_a_wait_arrives_at_the_next_slice",
    ),
    "C14 key in an error": (
        f"{_FAILURES}::test_an_echoed_key_never_shows",
        f"{_FAILURES}::test_the_traceback_shows_no_frame_of_an_sdk",
        f"{_REDACTION}::test_errors_and_reports_are_shown_without_secrets",
        "notebooks/test_ask.py::test_a_refused_key_leaves_no_trace_of_it",
    ),
    "C15 key in a cell": (
        "unit/prompts/test_build.py::test_secrets_do_not_leave",
        "unit/magics/test_parsing.py::test_keys_are_not_repeated",
        f"{_SECRETS}::test_it_is_neither_sent_nor_shown_nor_saved_and_the_record_is_found_again",
        f"{_REDACTION}::test_a_known_value_in_pieces_goes",
        f"{_REDACTION}::test_a_known_value_in_base64_goes_whatever_stands_beside_it",
        "notebooks/test_ask.py::test_a_cell_with_a_key_is_never_sent",
    ),
    "C16 network, proxy, authority": (
        f"{_FAILURES}::test_a_dead_port_names_the_host_and_the_cause",
        f"{_FAILURES}::test_a_proxy_that_refuses_is_named_without_its_password",
        f"{_STREAMS}::test_a_proxy_of_the_environment_is_used",
        "unit/providers/test_tls.py::test_an_unknown_authority_is_named_at_once",
    ),
    "C17 cut stream": (f"{_FAILURES}::test_a_stream_that_ends_early_keeps_the_text",),
    "C19 interrupt": (
        f"{_STOP}::test_while_a_magic_imports_what_it_needs",
        f"{_STOP}::test_while_the_reference_runs",
        f"{_STOP}::test_while_the_reply_streams",
        f"{_STOP}::test_while_a_rate_limit_is_waited_for",
        f"{_STOP}::test_while_a_candidate_is_compiled",
        f"{_STOP}::test_while_an_endless_kernel_runs",
        f"{_STOP}::test_a_second_press_does_not_leave_the_output_at_work",
        "unit/providers/test_resolve.py::test_an_interrupt_arrives_while_it_is_waited_for",
        "kernel/test_processes.py::test_nothing_is_left",
        "unit/cpu_device/test_faults.py::test_an_interrupt_leaves_no_process_behind",
    ),
    "C21 floods": (
        "unit/display/test_live.py::test_updates_come_at_most_ten_times_a_second",
        "unit/display/test_hostile.py::test_a_flood_is_cut_and_says_where_the_rest_is",
        "unit/cpu_device/test_compile.py::test_logs_are_capped",
        f"{_WRONG}[ten megabytes]",
    ),
    "C22 what is fed back": (
        "unit/prompts/test_build.py::test_history_keeps_to_its_budget_and_keeps_the_first_error",
        "unit/prompts/test_build.py::test_terminal_colours_are_taken_out",
    ),
    "C23 only what is shown is sent": (
        "unit/prompts/test_build.py::test_what_is_shown_is_what_is_sent",
        "notebooks/test_cuda_from.py::test_show_prompt_sends_nothing",
    ),
    "C24 command-line back ends": ("test_catalogue.py::test_providers_start_no_processes",),
    "C25 host code in a reply": (f"{_UNSENT}::test_nothing_of_a_reply_but_device_code_is_ever_executed",),
    "C26 no GPU": (
        f"{_UNSENT}::test_without_a_gpu_the_device_is_refused_before_anything_is_sent",
        "unit/cuda_device/test_device.py::test_what_is_lacking_is_one_sentence_with_the_next_step",
    ),
}


@cache
def functions(path: str) -> dict[str, str]:
    """Return the test functions of a file with the text that holds their parameters."""
    source = (TESTS / path).read_text(encoding="utf-8")
    tree = ast.parse(source)
    return {
        node.name: source
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("where", sorted({w for tests in CATALOGUE.values() for w in tests}))
def test_every_test_that_is_named_exists(where):
    path, _, rest = where.partition("::")
    name, _, word = rest.partition("[")
    assert name in functions(path)
    assert word.removesuffix("]") in functions(path)[name]


def test_every_case_has_a_number_of_its_own_and_a_test():
    numbers = [case.split()[0] for case in CATALOGUE]
    assert len(set(numbers)) == len(numbers)
    assert {n[0] for n in numbers} == {"A", "B", "C"}
    assert all(CATALOGUE.values())


def test_providers_start_no_processes():
    """A command-line program behind a provider would wait for input and outlive an interrupt: there is none."""
    for path in (TESTS.parent / "llmkernel" / "providers").glob("*.py"):
        names = {
            alias.name.partition(".")[0]
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in (*node.names, *([ast.alias(node.module)] if getattr(node, "module", None) else []))
        }
        assert not names & {"subprocess", "multiprocessing", "pty"}, path.name
