"""Estimates and intervals from arrays of scores: pure NumPy, no runs, no files.

NaN is a missing value everywhere and is dropped; ``n`` counts finite values.

- ``centre``: trimmed mean, interquartile mean, mean of finite values; cells of two groups
- ``resampling``, ``intervals``: the seed-block bootstrap and percentile intervals
- ``contrasts``: differences between arms, paired by seed or marginal; families of comparisons that
  share one error rate
- ``scale_windows``: the reward scales over which a learner keeps its score
- ``scores``: normalised scores, and means over rows of a log
- ``event_times``, ``solve_rates``: times of first events, and shares of runs with Wilson intervals
- ``geometry``: terminal states, and the bins that a categorical head uses
- ``agreement``: our estimates against published ones
- ``array_checks``: conversions and shape checks
"""

from rulescope.stats.agreement import (
    Counts,
    estimate_difference,
    learned_counts,
    least_seeds,
    outlier_probability,
    printed_probability,
    share_difference,
    shares_differ,
    statistic_probability,
)
from rulescope.stats.array_checks import DataError
from rulescope.stats.centre import (
    exact_iqm,
    finite_count,
    finite_mean,
    is_bimodal,
    split_groups,
    trimmed_mean,
)
from rulescope.stats.contrasts import (
    Family,
    UsableScales,
    interaction,
    interaction_differences,
    marginal_difference,
    paired_differences,
    paired_estimate,
    retention,
    retention_ratios,
    student_quantile,
    usable_scales,
    widen_to_student,
)
from rulescope.stats.event_times import (
    attained,
    attainment,
    mastery,
    mastery_target,
    restricted_mean,
    restricted_times,
    threshold_steps,
)
from rulescope.stats.geometry import (
    between_fraction,
    bootstrap_between_fraction,
    bootstrap_displacement,
    displacement,
    effective_bins,
    principal_fraction,
    unit_radius,
)
from rulescope.stats.intervals import (
    Estimate,
    Interval,
    Method,
    RecordedDraws,
    TailWarning,
    estimate_from,
    percentile_interval,
    recording_draws,
    tail,
)
from rulescope.stats.resampling import (
    EstimateArray,
    Statistic,
    bootstrap,
    estimate,
    estimates,
    resample,
    seed_blocks,
)
from rulescope.stats.scale_windows import (
    COMPETENT,
    Window,
    WindowKind,
    criterion_widths,
    half_best,
    scale_window,
    window_widths,
)
from rulescope.stats.scores import (
    deep_sea_tail,
    endpoint,
    last_fraction,
    normalised_score,
    post_switch_auc,
    rows_between,
    tail_from,
    tail_mean,
)
from rulescope.stats.solve_rates import (
    deepest_majority,
    found_goal,
    majority,
    random_discovery,
    solved,
    updates_for_depth,
    wilson,
)

__all__ = [
    "COMPETENT",
    "Counts",
    "DataError",
    "Estimate",
    "EstimateArray",
    "Family",
    "Interval",
    "Method",
    "RecordedDraws",
    "Statistic",
    "TailWarning",
    "UsableScales",
    "Window",
    "WindowKind",
    "attained",
    "attainment",
    "between_fraction",
    "bootstrap",
    "bootstrap_between_fraction",
    "bootstrap_displacement",
    "criterion_widths",
    "deep_sea_tail",
    "deepest_majority",
    "displacement",
    "effective_bins",
    "endpoint",
    "estimate",
    "estimate_difference",
    "estimate_from",
    "estimates",
    "exact_iqm",
    "finite_count",
    "finite_mean",
    "found_goal",
    "half_best",
    "interaction",
    "interaction_differences",
    "is_bimodal",
    "last_fraction",
    "learned_counts",
    "least_seeds",
    "majority",
    "marginal_difference",
    "mastery",
    "mastery_target",
    "normalised_score",
    "outlier_probability",
    "paired_differences",
    "paired_estimate",
    "percentile_interval",
    "post_switch_auc",
    "principal_fraction",
    "printed_probability",
    "random_discovery",
    "recording_draws",
    "resample",
    "restricted_mean",
    "restricted_times",
    "retention",
    "retention_ratios",
    "rows_between",
    "scale_window",
    "seed_blocks",
    "share_difference",
    "shares_differ",
    "solved",
    "split_groups",
    "statistic_probability",
    "student_quantile",
    "tail",
    "tail_from",
    "tail_mean",
    "threshold_steps",
    "trimmed_mean",
    "unit_radius",
    "updates_for_depth",
    "usable_scales",
    "widen_to_student",
    "wilson",
    "window_widths",
]
