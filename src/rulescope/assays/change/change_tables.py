"""The published tables of E3, with our numbers in them and only what was run."""

from __future__ import annotations

from collections.abc import Mapping

from rulescope.assays.analysis import CORE_DRAWS, adjusted, table_note
from rulescope.assays.change.switch_readouts import FINAL, switch_of
from rulescope.assays.comparison_families import PRIMARY
from rulescope.assays.estimates import Estimates, Label, count_text
from rulescope.assays.frame import Frame
from rulescope.assays.pivot import Entry, Index, known, names, pivot_table
from rulescope.assays.results import Column, Table, Value

CONDITION_NAMES = {
    "action-flip": "Action flip",
    "reward-move": "Reward move",
    "observation-flip": "Observation flip",
    "reward-sign": "Reward sign",
    "none": "No change",
}
ARM_NAMES = {
    "rule": "{}",
    "rule-freeze": "Frozen",
    "rule-no-aux": "No aux.",
    "dqn": "DQN 100k",
    "dqn-28672": "DQN 28,672",
    "dqn-cleared": "DQN cleared",
    "dqn-cleared-interactions": "DQN cleared, no restart",
    "a2c": "A2C",
    "ppo": "PPO",
    "a2c-cbp": "A2C, CBP",
    "ppo-cbp": "PPO, CBP",
    "dqn-cbp": "DQN, CBP",
}
"""As printed; in braces, the rule under audit."""
BOARDS = {"catch": "8×8", "catch-long": "16×16"}
REPLAY_NAMES = {"100k": "100k", "28672": "28,672", "cleared": "clear"}
THRESHOLD_ARMS = ("rule", "dqn-cleared", "dqn-28672", "dqn")
"""Systems whose times to competence are compared, in the printed order."""
REFERENCES = "by the same references before and after the switch"
SCORE = f"score 0 random, 1 optimal, {REFERENCES}"
TRIMMED = "integer-trimmed mean over seeds"
TARGET = 0.8
"""Score that counts as competent again in the tables of levels."""
COMPETENT = "at least 102 episodes completed since the switch"
REWARD_MOVE = (
    "what pays is a catch a quarter of the board to the right of the ball, around the edge; "
)


def tables(frame: Frame, found: Estimates) -> tuple[Table, ...]:
    """Return every table of E3; one of which nothing was run has no rows."""
    return (
        _contrasts(frame, found),
        _thresholds(frame, found),
        *(_recovery(str(condition), frame, found) for condition in frame.axes["condition"]),
        _auxiliary(frame, found),
        _replacement(frame, found),
    )


def _contrasts(frame: Frame, found: Estimates) -> Table:
    rows: list[tuple[Value, ...]] = []
    for row in found.where("contrast"):
        condition, replay = map(str, row.labels.values())
        if row.estimate.n:
            shown = f"{CONDITION_NAMES[condition].lower()} / {REPLAY_NAMES[replay]}"
            rows.append((shown, row.estimate, found.at("contrast-iqm", **row.labels)))
    return Table(
        "tab:e3-all",
        f"Post-switch area, {frame.subject} minus DQN with each replay memory",
        (
            Column("Change / replay"),
            Column("Trimmed mean [adjusted CI]", 4),
            Column("Exact IQM [adjusted CI]", 4),
        ),
        tuple(rows),
        table_note(
            frame,
            f"{area(frame)}; differences of each seed, then the mean over seeds; "
            f"{score_words(frame)}",
            CORE_DRAWS,
            adjusted(PRIMARY),
        ),
    )


def _thresholds(frame: Frame, found: Estimates) -> Table:
    changed = [condition for condition in frame.axes["condition"] if condition != "none"]
    board = next(iter(frame.worlds), "catch")
    rows: list[tuple[Value, ...]] = [
        (
            CONDITION_NAMES[str(condition)].lower(),
            "DQN clear" if arm == "dqn-cleared" else system_name(arm, frame),
            row.labels["threshold"],
            count_text(found.at("attained", **row.labels)),
            row.estimate,
        )
        for condition in changed
        for arm in THRESHOLD_ARMS
        for row in found.where("time", condition=condition, task=board, arm=arm)
        if row.estimate.n
    ]
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
        table_note(
            frame,
            f"attained: lifetimes with a log row at or above the threshold, {COMPETENT}; RM time: "
            f"mean time from the switch over all lifetimes, those that never attain counting with "
            f"the whole horizon; {score_words(frame)}",
            CORE_DRAWS,
        ),
    )


def score_words(frame: Frame) -> str:
    """Return what a score is; in worlds that the user named, their references say more."""
    return f"score {REFERENCES}" if frame.worlds else SCORE


def system_name(arm: str, frame: Frame) -> str:
    """Return an arm as it is printed."""
    return ARM_NAMES[arm].format(frame.subject)


def _recovery(condition: str, frame: Frame, found: Estimates) -> Table:
    here: dict[str, Label] = {"condition": condition}
    target = {**here, "threshold": TARGET}
    last = int(frame.iteration[-1])
    return pivot_table(
        f"tab:unified-recovery-{condition.replace('-', '_')}",
        f"{CONDITION_NAMES[condition]}: levels after the switch, and time to competence",
        found,
        (_boards(frame), systems(frame)),
        (
            Entry(Column("AUC [95% CI]"), "auc", here),
            Entry(Column("Final window [95% CI]"), "final", here),
            *(_attained(target) if frame.normalised else ()),
        ),
        table_note(
            frame,
            f"{REWARD_MOVE if condition == 'reward-move' else ''}{area(frame)}; final window: "
            f"{int(FINAL * last):,} to {last:,}; {TRIMMED}; {score_words(frame)}; "
            f"target: a score of {TARGET}, {COMPETENT}; RMD: mean delay in iterations over all "
            "lifetimes, those that never attain counting with the horizon",
            CORE_DRAWS,
        ),
    )


def _attained(target: Mapping[str, Label]) -> tuple[Entry, Entry]:
    """Return the columns of who attains ``target``, and when."""
    return (
        Entry(Column("Target"), "attained", target, lambda row: count_text(row.estimate)),
        Entry(Column("RMD", 1, interval=False), "rmd", target),
    )


def _auxiliary(frame: Frame, found: Estimates) -> Table:
    return pivot_table(
        "tab:unified-recovery-noaux",
        f"What the auxiliary losses do: {frame.subject} without them minus {frame.subject}",
        found,
        (
            _boards(frame),
            Index("Change", "condition", names(frame.axes["condition"], CONDITION_NAMES)),
            Index("Metric", "readout", {"auc": "AUC", "final": "Final window"}),
        ),
        (Entry(Column("Paired difference [95% CI]"), "no-aux"),),
        table_note(
            frame,
            f"{area(frame)}; differences of each seed, then the {TRIMMED}; {score_words(frame)}",
            CORE_DRAWS,
        ),
        shown=known,
    )


def _replacement(frame: Frame, found: Estimates) -> Table:
    return pivot_table(
        "e3-replacement",
        "What Continual Backprop does: baselines with it minus the same without it",
        found,
        (
            _boards(frame),
            Index("Baseline", "arm", names(("a2c", "ppo", "dqn"), ARM_NAMES)),
            Index("Change", "condition", names(frame.axes["condition"], CONDITION_NAMES)),
            Index("Metric", "readout", {"auc": "AUC", "final": "Final window"}),
        ),
        (Entry(Column("Paired difference [95% CI]"), "replacement"),),
        table_note(
            frame,
            f"{area(frame)}; differences of each seed, then the {TRIMMED}, intervals at least as "
            f"wide as Student's; {SCORE}",
            CORE_DRAWS,
        ),
        shown=known,
    )


def _boards(frame: Frame) -> Index:
    return Index("Grid", "task", names(frame.axes["task"], BOARDS))


def systems(frame: Frame) -> Index:
    """Return the column of arms."""
    return Index(
        "Condition", "arm", {arm: system_name(str(arm), frame) for arm in frame.axes["arm"]}
    )


def area(frame: Frame) -> str:
    """Describe the iterations over which an area is taken."""
    return (
        f"AUC: mean height of the log from the switch at iteration {switch_of(frame):,} to "
        f"{int(frame.iteration[-1]):,}"
    )
