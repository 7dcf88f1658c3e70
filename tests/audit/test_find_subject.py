"""What a person may type after ``audit``, and what it stands for."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from rulescope.assays.subject import DISCO103, Subject, find_subject, make_subject
from rulescope.core import arrays, entry_points
from rulescope.core.errors import SpecError, WeightsError
from rulescope.learners.disco_config import SPROUT, Disco
from rulescope.learners.open_config import Open
from rulescope.rules import disco_format, rule_weights
from rulescope.rules.embedded import EMBEDDED
from rulescope.rules.rule_weights import fresh

TINY = disco_format.DiscoSizes(predictions=4, trajectory=8, lifetime=4)


def test_a_name_is_that_of_an_embedded_or_released_or_random_rule() -> None:
    found, weights = find_subject("sprout")
    assert (found.architecture, found.rule, weights) == ("disco", "sprout", None)
    assert found == make_subject("sprout")
    assert found.learner == SPROUT
    assert found.null == "sprout-random:0"
    assert find_subject("disco103")[0] == DISCO103
    assert find_subject("random:3")[0].rule == "random:3"
    assert find_subject("open-breakout")[0].architecture == "open"
    assert find_subject("open")[0] == make_subject("open") == Subject(Open(), own_rules=True)


def test_a_file_is_known_by_its_content_and_driven_by_what_goes_with_its_size(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mine.npz"
    path.write_bytes(arrays.pack(fresh(TINY, seed=1)))
    found, weights = find_subject(str(path))
    assert weights == path
    assert found.name == "mine"
    assert found.rule == rule_weights.name_of(path)
    assert isinstance(found.learner, Disco)
    assert found.learner.agent == SPROUT.agent
    null = rule_weights.load(found.null or "")
    assert disco_format.sizes_of(null.arrays) == TINY


def test_the_folder_of_a_discovery_is_as_good_as_its_rule() -> None:
    found, weights = find_subject(str(EMBEDDED["sprout-start"].folder))
    assert weights == EMBEDDED["sprout-start"].path
    content = EMBEDDED["sprout-start"].content
    assert found.rule == f"sha256:{content}"
    assert found.folder == f"sprout-start-{content[:8]}"
    with pytest.raises(SpecError, match="give one of the two"):
        find_subject(str(weights), weights)


def test_a_rule_in_the_folder_where_one_stands_is_called_by_that_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(EMBEDDED["sprout"].folder)
    assert {find_subject(text)[0].name for text in (".", "rule.npz")} == {"sprout"}


def test_content_names_a_rule_as_a_specification_does() -> None:
    mine = EMBEDDED["sprout"]
    found, _ = find_subject(f"sha256:{mine.content}")
    assert (found.rule, found.folder) == (
        f"sha256:{mine.content}",
        f"sha256-{mine.content[:12]}",
    )
    assert isinstance(found.learner, Disco)
    assert found.learner.agent == SPROUT.agent
    with pytest.raises(WeightsError, match="name the file with --weights"):
        find_subject(f"sha256:{'0' * 64}")
    with pytest.raises(WeightsError, match="holds another rule"):
        find_subject(f"sha256:{'0' * 64}", mine.path)


def test_a_plug_in_may_not_have_the_name_of_a_known_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_points, "list_names", lambda _: ["sprout"])
    with pytest.raises(SpecError, match="'sprout' is also the name of a plug-in"):
        find_subject("sprout")


def test_a_vector_is_a_rule_of_the_other_family(tmp_path: Path) -> None:
    path = tmp_path / "mine.npy"
    np.save(path, np.zeros(1211, np.float32))
    found, weights = find_subject(str(path))
    assert (found.architecture, type(found.learner), weights) == ("open", Open, path)
    assert rule_weights.load(found.rule, path).parameter_count == 1211


@pytest.mark.parametrize(
    ("name", "null", "inputs"),
    [
        ("lpo-random-16:3", "lpo-random-16:0", None),
        ("lpg-random-4-5-6:3", "lpg-random-4-5-6:0", "none"),
        ("ta-lpg-random-4-5-6:3", "ta-lpg-random-4-5-6:0", "raw"),
    ],
)
def test_a_file_of_lpo_or_lpg_is_known_by_its_arrays(
    name: str, null: str, inputs: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "mine.npz"
    path.write_bytes(arrays.pack(rule_weights.load(name).arrays))
    found, weights = find_subject(str(path))
    assert (found.architecture, found.name, weights) == ("further", "mine", path)
    assert found.rule == rule_weights.name_of(path)
    assert found.null == null
    assert getattr(found.learner, "lifetime_inputs", None) == inputs
    null_learner = found.null_learner()
    assert null_learner == msgspec.structs.replace(found.learner, rule=null)
    assert found.history == ()


@pytest.mark.parametrize(
    "text",
    [
        *("dpo", "dpo:alpha=1.0,beta=0.5", "lpo-random:1", "lpo-random-8:3:features=ratio-first"),
        *("lpg-random:1", "ta-lpg-random:1:lifetime_inputs=relative"),
    ],
)
def test_dpo_lpo_and_lpg_are_named_by_rule_and_options(text: str) -> None:
    found, _ = find_subject(text)
    assert found.rule == text
    assert make_subject(text) == found
    assert found.null != getattr(found.learner, "rule", "")


def test_lpo_and_lpg_are_named_by_their_weights() -> None:
    assert find_subject("lpg")[0].name == find_subject("lpg-small")[0].name == "lpg-small"
    assert find_subject("lpg-small")[0].null == "lpg-random-8-16-16:0"
    assert find_subject("ta-lpg")[0].name == "ta-lpg-random:1"
    assert find_subject("lpo")[0].null == "lpo-random:0"
    assert find_subject("lpg-random:0")[0].null == "lpg-random:1"


def test_only_some_subjects_have_options(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    path.write_bytes(arrays.pack(rule_weights.load("ta-lpg-random-4-4-8:5").arrays))
    found, weights = find_subject(f"{path}:lifetime_inputs=relative")
    assert (found.name, weights) == ("mine:lifetime_inputs=relative", path)
    with pytest.raises(SpecError, match="'a2c' has no options: only DPO, LPO, LPG and plug-in"):
        find_subject("a2c:learning_rate=1")
    with pytest.raises(SpecError, match="option 'rule': 'lpg' has no option of that name"):
        find_subject("lpg:rule=lpg-random:3")


def test_anything_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="nearest: 'disco103'"):
        find_subject("disco13")
    with pytest.raises(WeightsError, match=r"rule\.npz"):
        find_subject(str(tmp_path))
    with pytest.raises(WeightsError, match="14 sizes"):
        rule_weights.load("fresh-1-2:0")
