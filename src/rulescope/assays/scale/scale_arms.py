"""The arms of E1: what is done to the state that the learner carries."""

from __future__ import annotations

from rulescope.assays.grid import Arm
from rulescope.run_spec import Hold, Pin, Placebo

ARMS = {
    "live": Arm(table_name="Live"),
    "pin": Arm(
        interventions=(Pin(carrier="recurrent"),),
        words="history cleared after each iteration (the recurrent state: set to zero)",
        table_name="Pin 0",
    ),
    "hold": Arm(
        interventions=(Hold(carrier="averages"),),
        words="moving averages kept as they were after the first update",
        table_name="EMA held",
    ),
    "both": Arm(
        interventions=(Pin(carrier="recurrent"), Hold(carrier="averages")),
        words="pin and hold",
        table_name="Both",
    ),
    "placebo": Arm(
        interventions=(Placebo(carrier="recurrent"),),
        words="state written back as it is",
        table_name="Placebo",
    ),
    "null": Arm(null=True, words="a rule with random weights", table_name="Null rule"),
}
"""All arms of E1; a row here adds one."""
