"""The marker of every test: one of fast, slow, torture, browser and ray.

Markers are assigned here and nowhere else: by folder, by file, or by test (``file::test``). Tests
that are not listed are fast. A test is listed as slow if it took more than a second or two of
processor time when it was measured (``pytest --durations=0``).
"""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent

SLOW: tuple[str, ...] = (
    "assays/test_assay_agent_identity.py",
    "assays/test_assay_published.py",
    "assays/test_plan.py::test_files_of_an_earlier_grid_do_not_stay",
    "audit/test_history_answer.py::test_no_answer_contradicts_what_is_true",
    "bench/",
    "claims/test_calibration.py::test_no_verdict_is_wrong_more_often_than_its_bound",
    "claims/test_exact_checks.py::test_agents_that_use_the_29th_step_distinguish_the_two",
    "claims/test_exact_checks.py::test_the_predicate_of_every_claim_is_met",
    "claims/test_ledger_rows.py",
    "claims/test_record_evidence.py",
    "claims/test_replication.py",
    "claims/test_replication_queue.py",
    "audit/test_atlas_folder.py::test_a_folder_has_a_page_tables_data_and_a_figure_the_same_every_time",
    "cli/test_atlas_command.py",
    "cli/test_audit.py",
    "cli/test_further_rules.py",
    "cli/test_audit_in_worlds.py",
    "cli/test_run.py",
    "discover/test_batched_lifetimes.py::test_ppo_as_the_drift_of_zero_weights_learns_catch",
    "discover/test_evolution_runner.py",
    "discover/test_evolution_training.py::test_a_warm_start_fits_the_weights_before_the_first_generation",
    "discover/test_evolution_training.py::test_results_do_not_depend_on_the_number_of_workers",
    "engine/test_local_engine.py",
    "engine/test_shared_prefixes.py",
    "engine/test_survival.py",
    "kit/test_jax_loss.py",
    "learners/test_cartpole.py",
    "learners/test_further.py::test_learns_catch",
    "report/test_every_figure.py",
    "report/test_site_builder.py",
    "report/test_change_figures.py",
    "mechanism/test_view_figures.py",
    "report/test_names.py",
    "report/test_open_figures.py",
    "report/test_report_figures.py",
    "report/test_stream_figures.py",
    "stats/test_agreement.py::test_candidates_of_the_true_kind_are_rarely_excluded",
    "test_baseline_lifetimes.py::test_every_carrier_of_every_baseline_can_be_treated",
    "test_boundary_identity.py",
    "test_example_kit.py",
    "test_example_plugin.py",
    "test_golden_runs.py::test_a_short_run_has_its_bits",
    "test_intervention_conformance.py",
    "test_machine.py::test_a_missing_program_is_a_failure_in_continuous_integration",
    "test_machine.py::test_a_missing_program_is_a_skip_that_the_last_lines_explain",
    "test_machine.py::test_any_skip_fails_the_run_in_continuous_integration",
    "test_open_lifetimes.py",
    "test_plugins.py::test_a_rule_that_exits_fails_in_a_worker_too_and_once",
    "test_plugins.py::test_a_rule_that_exits_is_a_failure_wherever_it_does",
    "test_plugins.py::test_workers_find_plugins_by_themselves",
    "test_shared_prefix.py",
    "test_runner.py::test_a_run_is_not_continued_by_an_edited_copy_of_the_program",
    "test_tour.py",
)
MARKERS: dict[str, str] = {
    "torture/": "torture",
    "report/test_browser.py": "browser",
    "engine/test_ray_engine.py": "ray",
    **dict.fromkeys(SLOW, "slow"),
}
"""By folder (with a slash at the end), file or test; the first that fits counts."""


def marker_of(path: Path, name: str) -> str | None:
    """Return the marker of the test called ``name`` in the file ``path``; None if not in here."""
    if not path.is_relative_to(TESTS):
        return None
    file = path.relative_to(TESTS).as_posix()
    test = f"{file}::{name.partition('[')[0]}"
    for place, marker in MARKERS.items():
        if place in (file, test) or (place.endswith("/") and file.startswith(place)):
            return marker
    return "fast"


def exists(place: str) -> bool:
    """Return whether a folder, file or test of :data:`MARKERS` is there."""
    file, _, test = place.partition("::")
    path = TESTS / file
    return path.exists() and (not test or f"def {test}(" in path.read_text(encoding="utf-8"))
