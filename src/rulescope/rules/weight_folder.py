"""One folder with the weights of several rules, so that one campaign can run all of them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from rulescope.rules import released_rules, rule_weights, weight_files


def gather_weights(rules: Mapping[str, Path | None], folder: Path) -> Path:
    """Copy the weights of ``rules`` into ``folder``, so that each is found there; return it.

    Each name has the place of its file, or None for the usual places. Rules without a file
    (embedded, or drawn from a seed) are left out: they need none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, place in rules.items():
        if name.startswith(rule_weights.CONTENT):
            if place is not None:
                rule_weights.load(name, place)  # another rule at that place is an error
                shutil.copyfile(place, folder / rule_weights.content_file(name))
        elif name in released_rules.RULES:
            rule = released_rules.get(name)
            shutil.copyfile(weight_files.ensure(rule, place), folder / rule.basename)
    return folder
