"""The published tables of E3, with our numbers in them and only what was run."""

from __future__ import annotations

from collections.abc import Mapping

from rulescope.assays.analysis import CORE_DRAWS, absent, adjusted, below
from rulescope.assays.change.switch_readouts import FINAL, switch_of
from rulescope.assays.comparison_families import PRIMARY, REPLAY
from rulescope.assays.frame import Frame
from rulescope.assays.results import Column, Table, Value
from rulescope.stats import Estimate

CONDITION_NAMES = {
    "action-flip": "Action flip",
    "reward-move": "Reward move",
    "observation-flip": "Observation flip",
    "reward-sign": "Reward sign",
    "none": "No change",
}
ARM_NAMES = {
    "disco": "{}",
    "disco-freeze": "Frozen",
    "disco-no-aux": "No aux.",
    "dqn": "DQN 100k",
    "dqn-28672": "DQN 28,672",
    "dqn-cleared": "DQN cleared",
    "dqn-cleared-interactions": "DQN cleared, no restart",
    "a2c": "A2C",
    "ppo": "PPO",
}
"""As printed; in braces, the rule under audit."""
BOARDS = {"catch": "8×8", "catch-long": "16×16"}
REPLAY_NAMES = {"100k": "100k", "28672": "28,672", "cleared": "clear"}
THRESHOLD_ARMS = ("disco", "dqn-cleared", "dqn-28672", "dqn")
"""Systems whose times to competence are compared, in the printed order."""
SCORE = "score 0 random, 1 optimal, by the same references before and after the switch"
TRIMMED = "integer-trimmed mean over seeds"
COMPETENT = "at least 102 episodes completed since the switch"


def tables(frame: Frame, estimates: Mapping[str, Estimate]) -> tuple[Table, ...]:
    """Return every table of E3 that has a row."""
    made = [
        _all(frame, estimates),
        _thresholds(frame, estimates),
        *(_recovery(str(name), frame, estimates) for name in frame.axes["condition"]),
        _auxiliary(frame, estimates),
    ]
    return tuple(table for table in made if table.rows)


def _all(frame: Frame, estimates: Mapping[str, Estimate]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for name in REPLAY:
        _, condition, replay = name.split("/")
        if estimates[name].n:
            shown = f"{CONDITION_NAMES[condition].lower()} / {REPLAY_NAMES[replay]}"
            rows.append((shown, estimates[name], estimates[f"contrast-iqm/{condition}/{replay}"]))
    return Table(
        "tab:e3-all",
        f"Post-switch area, {frame.subject} minus DQN with each replay memory",
        (
            Column("Change / replay"),
            Column("Trimmed mean [adjusted CI]", 4),
            Column("Exact IQM [adjusted CI]", 4),
        ),
        tuple(rows),
        below(
            frame,
            f"{area(frame)}; differences of each seed, then the mean over seeds; {SCORE}",
            CORE_DRAWS,
            adjusted(PRIMARY),
        ),
    )


def _thresholds(frame: Frame, estimates: Mapping[str, Estimate]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for condition in (name for name in frame.axes["condition"] if name != "none"):
        for arm in THRESHOLD_ARMS:
            for threshold in (0.8, 0.9):
                key = f"{condition}/catch/{arm}/{threshold}"
                time = estimates.get(f"time/{key}", absent())
                if time.n:
                    names = (CONDITION_NAMES[str(condition)].lower(), _system(arm, frame))
                    rows.append((*names, threshold, _count(estimates, key), time))
    return Table(
        "tab:e3-thresholds",
        "Who becomes competent again after the change, and how soon",
        (
            Column("Change"),
            Column("System"),
            Column("Threshold", 1),
            Column("Attained"),
            Column("RM time (10³ interactions)", 1),
        ),
        tuple(rows),
        below(
            frame,
            f"attained: lifetimes with a log row at or above the threshold, {COMPETENT}; RM time: "
            f"mean time from the switch over all lifetimes, those that never attain counting with "
            f"the whole horizon; {SCORE}",
            CORE_DRAWS,
        ),
    )


def named(arm: str, frame: Frame) -> str:
    """Return an arm as it is printed."""
    return ARM_NAMES[arm].format(frame.subject)


def _system(arm: str, frame: Frame) -> str:
    return "DQN clear" if arm == "dqn-cleared" else named(arm, frame)


def _count(estimates: Mapping[str, Estimate], key: str) -> str | None:
    """Return how many of how many lifetimes attained, as printed: 17/18."""
    share = estimates[f"attained/{key}"]
    return f"{round(share.value * share.n)}/{share.n}" if share.n else None


def _recovery(condition: str, frame: Frame, estimates: Mapping[str, Estimate]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for key, _ in frame.places():
        own, task, arm = key.split("/")
        if own == condition:
            rows.append(
                (
                    BOARDS[task],
                    named(arm, frame),
                    estimates[f"auc/{key}"],
                    estimates[f"final/{key}"],
                    _count(estimates, f"{key}/0.8"),
                    estimates[f"rmd/{key}/0.8"],
                )
            )
    last = int(frame.iteration[-1])
    return Table(
        f"tab:unified-recovery-{condition.replace('-', '_')}",
        f"{CONDITION_NAMES[condition]}: levels after the switch, and time to competence",
        (
            Column("Grid"),
            Column("Condition"),
            Column("AUC [95% CI]"),
            Column("Final window [95% CI]"),
            Column("Target"),
            Column("RMD", 1, interval=False),
        ),
        tuple(rows),
        below(
            frame,
            f"{_what(condition)}{area(frame)}; final window: {int(FINAL * last):,} to {last:,}; "
            f"{TRIMMED}; {SCORE}; target: a score of 0.8, {COMPETENT}; RMD: mean delay in "
            "iterations over all lifetimes, those that never attain counting with the horizon",
            CORE_DRAWS,
        ),
    )


def _what(condition: str) -> str:
    """Say what changed, where the name leaves it open."""
    if condition != "reward-move":
        return ""
    return "what pays is a catch a quarter of the board to the right of the ball, around the edge; "


def _auxiliary(frame: Frame, estimates: Mapping[str, Estimate]) -> Table:
    metrics = {"auc": "AUC", "final": "Final window"}
    rows: list[tuple[Value, ...]] = []
    for task in frame.axes["task"]:
        for condition in frame.axes["condition"]:
            for metric, shown in metrics.items():
                found = estimates.get(f"no-aux/{condition}/{task}/{metric}", absent())
                if found.n:
                    names = (BOARDS[str(task)], CONDITION_NAMES[str(condition)])
                    rows.append((*names, shown, found))
    return Table(
        "tab:unified-recovery-noaux",
        f"What the auxiliary losses do: {frame.subject} without them minus {frame.subject}",
        (Column("Grid"), Column("Change"), Column("Metric"), Column("Paired difference [95% CI]")),
        tuple(rows),
        below(
            frame,
            f"{area(frame)}; differences of each seed, then the {TRIMMED}; {SCORE}",
            CORE_DRAWS,
        ),
    )


def area(frame: Frame) -> str:
    """Say between which iterations an area is taken."""
    return (
        f"AUC: mean height of the log from the switch at iteration {switch_of(frame):,} to "
        f"{int(frame.iteration[-1]):,}"
    )
