"""Simulated campaigns of known truth: how often verdicts are wrong, and how soon they are right.

Counts alone decide here. Verdicts on records also need the interval of the estimate to agree, which
makes them rarer, never more frequent: error rates are at most those found here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rulescope.claims.decision import Errors, Floats, Outcome, Reading, decide
from rulescope.claims.ledger import parts_of
from rulescope.claims.verdicts import combine
from rulescope.core import seeds
from rulescope.render.tables import Column, Table
from rulescope.stats.sequential_counts import LOOKS

CAMPAIGNS = 10_000

Draw = Callable[[np.random.Generator, int], Floats]
"""Draws the values of so many lifetimes: [n]."""


class Scenario(NamedTuple):
    """A claim of one kind, and lifetimes of known truth."""

    name: str
    atoms: tuple[str, ...]
    draws: tuple[Draw, ...]
    """One for each atom."""
    wrong: Outcome
    """The outcome that would be an error, or the one whose frequency is the power."""
    bound: float
    """What its frequency must not exceed; 1 where it is power."""
    level: bool = False
    share: bool = False
    family: int = 1
    detectable: float | None = None


class Rates(NamedTuple):
    """How often simulated campaigns had each outcome."""

    holds: float
    fails: float
    undecided: float
    seeds: float
    """Mean number of seeds when a campaign stopped."""

    def of(self, outcome: Outcome) -> float:
        """Return the frequency of ``outcome``."""
        rates: dict[Outcome, float] = {
            "holds": self.holds,
            "fails": self.fails,
            "undecided": self.undecided,
        }
        return rates[outcome]


def normal(mean: float) -> Draw:
    """Return normal values of unit spread around ``mean``."""
    return lambda rng, n: rng.normal(mean, 1.0, n)


def skewed(median: float) -> Draw:
    """Return values with a long upper tail around ``median``."""
    return lambda rng, n: median + rng.exponential(1.0, n) - np.log(2.0)


def two_humped(learned: float) -> Draw:
    """Return scores of a cell in which a share ``learned`` of lifetimes learn."""

    def draw(rng: np.random.Generator, n: int) -> Floats:
        found: Floats = np.where(
            rng.random(n) < learned, rng.normal(0.99, 0.005, n), rng.normal(0.0, 0.01, n)
        )
        return found

    return draw


def happening(share: float) -> Draw:
    """Return flags that are 1 with probability ``share``."""
    return lambda rng, n: (rng.random(n) < share).astype(np.float64)


SIGN, NEAR, ABOVE, SHARE = (
    ("sign(a, +)",),
    ("near_zero(a, 1)",),
    ("above(a, 0.8)",),
    ("above(a, 0.5)",),
)
ERRORS = (
    Scenario("sign claim, no effect", SIGN, (normal(0.0),), "holds", 0.025),
    Scenario("sign claim, no effect, skewed", SIGN, (skewed(0.0),), "holds", 0.025),
    Scenario(
        "sign claim, no effect, family of 11", SIGN, (normal(0.0),), "holds", 0.025 / 11, family=11
    ),
    Scenario(
        "sign claim, effect just detectable", SIGN, (normal(0.7),), "fails", 0.025, detectable=0.7
    ),
    Scenario("equivalence, difference at the margin", NEAR, (normal(1.0),), "holds", 0.05),
    Scenario("equivalence, difference at the margin", NEAR, (normal(1.0),), "fails", 0.025),
    Scenario("share of a half", SHARE, (happening(0.5),), "holds", 0.025, share=True),
    Scenario("share of a half", SHARE, (happening(0.5),), "fails", 0.025, share=True),
    Scenario("two-humped cell, 65 % learn", ABOVE, (two_humped(0.65),), "holds", 0.025, level=True),
    Scenario("two-humped cell, 65 % learn", ABOVE, (two_humped(0.65),), "fails", 0.025, level=True),
    Scenario("two parts, one without effect", SIGN * 2, (normal(2.0), normal(0.0)), "holds", 0.025),
    Scenario("two parts, both at the bound", SIGN * 2, (normal(0.0), normal(0.0)), "fails", 0.025),
)
"""Truths on the boundary of a claim, where errors are most frequent."""


def simulate(
    scenario: Scenario, campaigns: int = CAMPAIGNS, looks: Sequence[int] = LOOKS, seed: int = 0
) -> Rates:
    """Return how often ``campaigns`` of ``scenario`` have each outcome."""
    rng = seeds.stream(seed, "calibration", 0)
    detectable = {} if scenario.detectable is None else {"a": scenario.detectable}
    parts = parts_of(scenario.atoms, "", detectable)
    errors = [Errors.of(part, scenario.family, len(parts)) for part in parts]
    outcomes: Counter[Outcome] = Counter()
    stopped = 0
    for _ in range(campaigns):
        evidence = [
            decide(part, _readings(draw(rng, looks[-1]), scenario, looks), looks, error)
            for part, draw, error in zip(parts, scenario.draws, errors, strict=True)
        ]
        outcomes[combine([one.outcome for one in evidence])] += 1
        stopped += max(one.n for one in evidence)
    share = {outcome: count / campaigns for outcome, count in outcomes.items()}
    return Rates(
        share.get("holds", 0.0),
        share.get("fails", 0.0),
        share.get("undecided", 0.0),
        stopped / campaigns,
    )


def _readings(values: Floats, scenario: Scenario, looks: Sequence[int]) -> dict[int, Reading]:
    if scenario.share:
        return {
            n: Reading(n, float(values[:n].mean()), happened=int(values[:n].sum())) for n in looks
        }
    return {
        n: Reading(n, float(np.median(values[:n])), values[:n], level=scenario.level) for n in looks
    }


def power_curves() -> dict[str, list[Scenario]]:
    """Return scenarios of growing truth for each kind of claim; the outcome is ``holds``."""
    return {
        "sign (effect in standard deviations of a seed)": [
            Scenario(f"{mean:g}", SIGN, (normal(mean),), "holds", 1.0)
            for mean in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
        ],
        "sign, family of 11": [
            Scenario(f"{mean:g}", SIGN, (normal(mean),), "holds", 1.0, family=11)
            for mean in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
        ],
        "equivalence (difference in margins, spread of a seed one margin)": [
            Scenario(f"{mean:g}", NEAR, (normal(mean),), "holds", 1.0)
            for mean in (1.0, 0.75, 0.5, 0.25, 0.0)
        ],
        "share above a half (true share)": [
            Scenario(f"{share:g}", SHARE, (happening(share),), "holds", 1.0, share=True)
            for share in (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
        ],
        "score above 0.8 (share of lifetimes that learn)": [
            Scenario(f"{share:g}", ABOVE, (two_humped(share),), "holds", 1.0, level=True)
            for share in (0.65, 0.8, 0.9, 0.95, 1.0)
        ],
    }


class SimulatedError(NamedTuple):
    """A scenario, and how often simulated campaigns were wrong."""

    scenario: Scenario
    rates: Rates
    campaigns: int

    @property
    def allowed(self) -> float:
        """The bound of the error, and three standard errors of a simulation of that size."""
        bound = self.scenario.bound
        return bound + 3.0 * math.sqrt(bound * (1.0 - bound) / self.campaigns)

    @property
    def passed(self) -> bool:
        """Whether the error is at most what is allowed."""
        return self.rates.of(self.scenario.wrong) <= self.allowed


def simulate_errors(campaigns: int = CAMPAIGNS) -> list[SimulatedError]:
    """Return the error rates of all of :data:`ERRORS`."""
    return [SimulatedError(one, simulate(one, campaigns), campaigns) for one in ERRORS]


def error_table(found: Sequence[SimulatedError]) -> Table:
    """Return the error rates as a table."""
    words = {"holds": "reproduced", "fails": "contradicted", "undecided": "undecided"}
    return Table(
        label="verdict-errors",
        title="How often verdicts are wrong where that is most likely",
        columns=(Column("Truth"), Column("Wrong verdict"), Column("Rate", 4), Column("Level", 4)),
        rows=tuple(
            (
                one.scenario.name,
                words[one.scenario.wrong],
                one.rates.of(one.scenario.wrong),
                one.scenario.bound,
            )
            for one in found
        ),
        note=f"{found[0].campaigns:,} simulated campaigns a row, with looks at "
        f"{', '.join(map(str, LOOKS))} seeds. Counts alone decide; verdicts on records also need "
        "the interval of the estimate, which makes them rarer.",
        tells_n=False,
    )


def power_table(campaigns: int = CAMPAIGNS // 5) -> Table:
    """Return how often, and after how many seeds, true claims are reproduced."""
    rows = [
        (kind, scenario.name, rates.holds, rates.seeds)
        for kind, scenarios in power_curves().items()
        for scenario in scenarios
        for rates in (simulate(scenario, campaigns),)
    ]
    return Table(
        label="verdict-power",
        title="How often true claims are reproduced, and after how many seeds",
        columns=(Column("Claim"), Column("Truth"), Column("Reproduced", 3), Column("Seeds", 1)),
        rows=tuple(rows),
        note=f"{campaigns:,} simulated campaigns a row of up to {LOOKS[-1]} seeds; seeds: mean "
        "number when a campaign stopped.",
        tells_n=False,
    )
