"""Rules and worlds of other packages: found by name, imported when used, known by their source."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from plugin_packages import RULE, Site, importable
from rulescope import run_packages, run_spec
from rulescope.core import entry_points, plugin_source
from rulescope.core.errors import RecordError, SpecError, WorldError
from rulescope.engine.local_engine import run_all
from rulescope.envs.plugin_world import make_plugin_world, pin_plugin_world
from rulescope.envs.world_config import Catch
from rulescope.learners.baseline_config import A2C, NetworkSizes
from rulescope.learners.learner_config import Plugin
from rulescope.learners.plugin_rule import pin_rule
from rulescope.lifetime import Lifetime
from rulescope.records import Store
from rulescope.run_spec import Pin, RunSpec, Transplant
from rulescope.runner import Paused, find_or_make

pytestmark = pytest.mark.usefixtures("site")

SMALL = NetworkSizes(hidden=(8, 8))

WORLD = """
from rulescope.envs.catch import CatchEnv
from rulescope.envs.world_config import Catch

def small(lanes):
    return CatchEnv(Catch(rows=5, columns=5), lanes)

def other(lanes):
    return CatchEnv(Catch(rows=5, columns=5), lanes + 1)

def text(lanes):
    return "a world"

number = 3
"""

OUTRIGHT = """
import numpy as np
from rulescope.core import seeds
from rulescope.learners.learner import Carrier, Choice, Learner
from rulescope.rules.rule_weights import random_weights

class Still(Learner):
    CARRIERS = ("params",)
    metrics = ()

    def __init__(self, setup):
        self.setup = setup
        self.streams = {"action": seeds.stream(setup.seed, "action")}
        self.table = np.zeros(setup.actions)
        self.carriers = {"params": Carrier(lambda: {"table": self.table.copy()}, self._set)}

    def _set(self, content):
        self.table = np.array(content["table"])

    def act(self, observation):
        drawn = self.streams["action"].integers(self.setup.actions, size=len(observation))
        return Choice(drawn, {})

    def learn(self, rollout, measure):
        return {}

class Nameless(Still):
    CARRIERS = None

class Liar(Still):
    CARRIERS = ("recurrent", "params")

class Undigested(Still):
    def __init__(self, setup):
        super().__init__(setup)
        self.rule = random_weights(3)

class Unready(Learner):
    CARRIERS = ("params",)

class Fast(Still):
    LEARNING_RATE = -1

not_a_class = len
"""

WEIGHTED = """
import numpy as np
import torch
from pathlib import Path
from rulescope.learners.update_rule import UpdateRule

class Weighted(UpdateRule):
    def __init__(self, setup):
        self.scale = np.loadtxt(Path(__file__).with_name("weights.txt")).astype(np.float32)
        super().__init__(setup)

    def weights(self):
        return {"scale": self.scale}

    def start(self):
        return {"nothing": torch.zeros(())}

    def loss(self, seen, state):
        return -(float(self.scale) * seen.rewards * seen.chosen()).mean(), state
"""


def short(learner: Plugin | A2C, **changes: Any) -> RunSpec:
    run = RunSpec(
        learner=msgspec.structs.replace(learner, agent=SMALL),
        iterations=4,
        log_every=2,
        steps=7,
        keep=("recurrent",) if "recurrent" in learner.CARRIERS else ("params",),
    )
    return msgspec.structs.replace(run, **changes)


def as_a_new_process_would() -> None:
    """Forget what was hashed and imported, which a process does once only."""
    plugin_source.digest.cache_clear()
    plugin_source.package_digest.cache_clear()
    for name in [name for name in sys.modules if name.startswith(("rules_of_others", "a_world"))]:
        del sys.modules[name]


def test_listing_imports_nothing(site: Site) -> None:
    site.rule("raise RuntimeError('imported')")
    site.world("raise RuntimeError('imported')", "small", "small")
    assert "counted" in entry_points.list_names("rule")
    assert "small" in entry_points.list_names("world")
    [found] = [each for each in entry_points.list_installed("rule") if each.name == "counted"]
    assert found.package == "rules-of-others 1.0"
    assert found.value == "rules_of_others.rule:Counted"
    run = short(Plugin(rule="counted", source="0" * 64))
    with pytest.raises(SpecError, match=r"learner\.source"):
        run_packages.require_plugins([run])  # hashes, and still imports nothing
    assert not {"rules_of_others", "a_world"} & set(sys.modules)


def test_a_pinned_rule_has_all_that_a_run_needs(site: Site) -> None:
    site.rule()
    found = pin_rule("counted")
    assert (found.rule, found.learning_rate) == ("counted", 0.01)
    assert found.carriers == ("recurrent", "moments", "params")
    assert found == pin_rule("counted")
    assert found.carriers == run_spec.checked(short(found)).learner.CARRIERS


def test_an_unknown_name_is_reported_with_the_nearest(site: Site) -> None:
    site.rule()
    with pytest.raises(SpecError, match="no plug-in rule is called 'conted'; nearest: 'counted'"):
        pin_rule("conted")


def test_where_nothing_is_installed_the_group_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(entry_points.GROUPS, "world", "rulescope.no-such-group")
    with pytest.raises(SpecError, match=r"none is installed .*'rulescope.no-such-group'"):
        pin_plugin_world("small")


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("x = 1", "AttributeError: module 'rules_of_others.rule' has no attribute 'Counted'"),
    ],
)
def test_a_failed_import_names_package_and_cause(site: Site, source: str, cause: str) -> None:
    site.rule(source)
    with pytest.raises(SpecError) as raised:
        pin_rule("counted")
    assert "the rule 'counted' of rules-of-others 1.0 (rules_of_others.rule:Counted)" in str(
        raised.value
    )
    assert cause in str(raised.value)


def test_a_missing_module_is_reported(site: Site) -> None:
    site.offer("ghosts", {}, {"rulescope.rules": {"ghost": "ghosts.rule:Ghost"}})
    with pytest.raises(SpecError, match=r"of ghosts 1.0 .*there is no module 'ghosts'"):
        pin_rule("ghost")


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("not_a_class", "must be a class derived from rulescope.learners.learner.Learner"),
        ("Unready", "the class Unready does not define act, learn"),
        ("Nameless", "the class Nameless must name its carriers"),
        ("Fast", "LEARNING_RATE must be a number above 0, at most 100, not -1"),
    ],
)
def test_an_invalid_rule_is_reported_with_what_is_expected(
    site: Site, attribute: str, message: str
) -> None:
    site.rule(OUTRIGHT, attribute=attribute)
    with pytest.raises(SpecError, match=message):
        pin_rule("counted")


def test_carriers_must_be_those_that_were_promised(site: Site) -> None:
    site.rule(OUTRIGHT, attribute="Liar")
    with pytest.raises(SpecError, match=r"CARRIERS promises recurrent, params, but .* are params"):
        Lifetime(short(pin_rule("counted")))


def test_weights_without_a_digest_are_reported_before_the_lifetime(site: Site) -> None:
    site.rule(OUTRIGHT, attribute="Undigested")
    with pytest.raises(SpecError, match=r"rule_digest\(\) of a new learner is not rule.content"):
        Lifetime(short(pin_rule("counted")))


def test_carriers_of_a_spec_must_be_those_of_the_rule(site: Site) -> None:
    site.rule()
    found = msgspec.structs.replace(pin_rule("counted"), carriers=("recurrent", "parms"))
    with pytest.raises(SpecError, match=r"learner\.carriers: .* moments, params, not .*parms"):
        Lifetime(short(found))


def test_a_rule_without_a_history_runs_but_cannot_be_audited(site: Site) -> None:
    site.rule(OUTRIGHT, attribute="Still")
    run = short(pin_rule("counted"))
    life = Lifetime(run)
    life.run()
    assert life.record().manifest.rule is not None
    pinned = msgspec.structs.replace(run, interventions=(Pin(carrier="recurrent"),))
    with pytest.raises(SpecError, match=r"interventions\[0\]\.carrier: .*'counted' has no history"):
        run_spec.checked(pinned)


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        (
            "text",
            "must return a rulescope.envs.environment.Environment with that many lanes, not .*str",
        ),
        ("other", "with that many lanes, not one of 3 lanes"),
        ("number", r"must be a function \(lanes\) -> rulescope.envs.environment.Environment"),
    ],
)
def test_an_invalid_world_is_reported_with_what_is_expected(
    site: Site, attribute: str, message: str
) -> None:
    site.world(WORLD, "small", attribute)
    with pytest.raises(SpecError, match=message):
        make_plugin_world(pin_plugin_world("small"), lanes=2)


def test_two_packages_cannot_have_one_name(site: Site) -> None:
    site.rule()
    site.offer("others-too", {}, {"rulescope.rules": {"counted": "rules_of_others.rule:Counted"}})
    with pytest.raises(SpecError, match=r"provided by others-too 1.0 and rules-of-others 1.0"):
        pin_rule("counted")


class TestSource:
    """What makes a rule another rule."""

    def source(self) -> str:
        as_a_new_process_would()
        return pin_rule("counted").source

    def test_imported_code_and_data_count(self, site: Site) -> None:
        site.rule()
        found = {self.source()}
        site.write("rules_of_others/rule.py", RULE + "x = 1\n")
        found.add(self.source())
        site.write("rules_of_others/rule.py", RULE + "def later():\n    from . import helper\n")
        found.add(self.source())
        site.write("rules_of_others/helper.py", "x = 1")
        found.add(self.source())
        site.write("rules_of_others/helper.py", "x = 2")
        found.add(self.source())
        site.write("rules_of_others/weights.txt", "1.0")
        found.add(self.source())
        assert len(found) == 6

    def test_comments_docstrings_and_modules_never_imported_do_not_count(self, site: Site) -> None:
        site.rule()
        before = self.source()
        site.write("rules_of_others/rule.py", '"""What it is."""\n' + RULE + "# edited\n")
        site.write("rules_of_others/unused.py", "x = 1")
        site.write("rules_of_others/README.md", "text")
        assert self.source() == before

    def test_a_module_of_its_own_beside_the_package_counts(self, site: Site) -> None:
        site.rule(RULE + "import beside_it\n")
        site.write("beside_it.py", "x = 1")
        before = self.source()
        site.write("beside_it.py", "x = 2")
        assert self.source() != before

    def test_all_modules_count_where_an_import_has_a_computed_name(self, site: Site) -> None:
        site.rule(RULE + "import importlib\nimportlib.import_module('.h' + 'i', __package__)\n")
        site.write("rules_of_others/hi.py", "x = 1")
        before = self.source()
        site.write("rules_of_others/hi.py", "x = 2")
        assert self.source() != before

    def test_a_source_of_an_earlier_version_is_accepted_while_no_file_differs(
        self, site: Site
    ) -> None:
        site.rule()
        as_a_new_process_would()
        earlier = plugin_source.hash_whole_package("rules_of_others.rule")
        assert earlier != self.source()
        entry_points.require_source("rule", "counted", earlier)
        site.write("rules_of_others/rule.py", RULE + "x = 1\n")
        as_a_new_process_would()
        with pytest.raises(SpecError, match=r"learner\.source"):
            entry_points.require_source("rule", "counted", earlier)

    def test_what_tools_leave_does_not_count(self, site: Site) -> None:
        site.rule()
        before = self.source()
        site.write("rules_of_others/__pycache__/rule.cpython-399.pyc", "x")
        site.write("rules_of_others/.rule.py.swp", "x")
        site.write("rules_of_others/.git/index", "x")
        site.write("rules_of_others/rule.py~", "x")
        site.write("elsewhere/rule.py", "x")
        path = site.folder / "rules_of_others/rule.py"
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        assert self.source() == before

    def test_a_module_without_a_package_is_its_own_source(self, site: Site) -> None:
        site.offer("one", {"one.py": RULE}, {"rulescope.rules": {"one": "one:Counted"}})
        before = pin_rule("one").source
        site.write("two.py", "x = 1")
        as_a_new_process_would()
        assert pin_rule("one").source == before
        site.write("one.py", RULE + "x = 1\n")
        as_a_new_process_would()
        assert pin_rule("one").source != before

    def test_neighbours_in_a_namespace_do_not_count(self, site: Site) -> None:
        files = {"shared/mine/__init__.py": RULE}
        site.offer("shared-mine", files, {"rulescope.rules": {"mine": "shared.mine:Counted"}})
        before = pin_rule("mine").source
        site.write("shared/theirs/__init__.py", "x = 1")
        as_a_new_process_would()
        assert pin_rule("mine").source == before

    def test_a_process_uses_the_code_that_it_has_imported(self, site: Site) -> None:
        site.rule()
        before = pin_rule("counted")
        site.write("rules_of_others/rule.py", RULE + "x = 1\n")
        assert pin_rule("counted") == before


class TestAnotherSource:
    """A run of a rule that is no longer the installed one never begins."""

    @pytest.fixture
    def old(self, site: Site) -> Plugin:
        """Return a rule that has been edited since."""
        site.rule()
        before = pin_rule("counted")
        site.write("rules_of_others/rule.py", RULE + "x = 1\n")
        as_a_new_process_would()
        return before

    def test_it_is_refused_with_both_hashes(self, old: Plugin) -> None:
        here = pin_rule("counted").source
        with pytest.raises(SpecError) as raised:
            Lifetime(short(old))
        assert str(raised.value).startswith("learner.source: the rule 'counted' of rules-of-others")
        assert here[:12] in str(raised.value)
        assert old.source[:12] in str(raised.value)

    def test_nothing_of_a_campaign_runs(self, old: Plugin, tmp_path: Path) -> None:
        store = Store(tmp_path / "store")
        with pytest.raises(SpecError, match=r"learner\.source"):
            run_all([short(A2C()), short(old)], store, workers=1)
        assert short(A2C()).id not in store

    def test_not_even_its_donor_runs(self, old: Plugin, tmp_path: Path) -> None:
        donor = short(pin_rule("counted"), seed=5)
        item = Transplant(carrier="recurrent", donor=donor, mode="natural")
        store = Store(tmp_path / "store")
        with pytest.raises(SpecError, match=r"learner\.source"):
            find_or_make(short(old, interventions=(item,)), store)
        assert donor.id not in store


def test_the_record_identifies_the_rule_and_is_read_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "store")
    with monkeypatch.context() as patch, importable(tmp_path / "elsewhere", tmp_path, patch):
        Site(tmp_path / "elsewhere").rule(name="passing")
        run = short(pin_rule("passing"))
        find_or_make(run, store)
    assert "passing" not in entry_points.list_names("rule")
    record = store.read(run.id)
    assert isinstance(record.spec.learner, Plugin)
    rule = record.manifest.rule
    assert rule is not None
    assert (rule.name, rule.sha256) == ("passing", record.spec.learner.source)
    np.testing.assert_array_equal(record.state["recurrent/count"], [4.0, 4.0])
    with pytest.raises(SpecError, match="no plug-in rule is called 'passing'"):
        Lifetime(run)


def test_a_rule_with_weights_is_identified_by_them_too(site: Site) -> None:
    site.rule(WEIGHTED, attribute="Weighted")
    site.write("rules_of_others/weights.txt", "0.5")
    found = pin_rule("counted")
    life = Lifetime(short(found))
    life.run()
    rule = life.record().manifest.rule
    assert rule is not None
    assert (rule.name, rule.sha256) == ("counted", found.source)
    assert rule.digest != found.source
    life.learner.scale[...] = 2.0  # type: ignore[attr-defined]
    with pytest.raises(RecordError, match="weights of rule 'counted' changed"):
        life.record()


def test_workers_find_plugins_by_themselves(site: Site, tmp_path: Path) -> None:
    site.rule()
    site.world(WORLD, "small", "small")
    world = pin_plugin_world("small")
    run = short(pin_rule("counted"), environment=world)
    assert str(site.folder) in os.environ["PYTHONPATH"]
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    campaign = run_all([run], there, workers=1)
    assert campaign.failed == {}
    expected = find_or_make(run, here).manifest.science_hash
    assert there.read(run.id).manifest.science_hash == expected


FAULTY = """
import sys
import numpy as np
from rulescope.envs.catch import CatchEnv
from rulescope.envs.world_config import Catch

class Faulty(CatchEnv):
    def __init__(self, lanes):
        super().__init__(Catch(rows=5, columns=5), lanes)

    def step(self, actions):
        step = super().step(actions)
        return RETURNED
"""

UNSOUND = {
    "step._replace(reward=np.array([np.nan, 0.0]))": "reward holds nan",
    "step._replace(payoff=np.array([0.0, np.inf]))": "payoff holds inf",
    "step._replace(reward=0.5)": r"reward must be an array \[2\] of numbers, not 0.5",
    "step._replace(payoff=None)": r"payoff must be an array \[2\] of numbers, not None",
    "step._replace(terminal=False)": r"terminal must be an array \[2\] of bool, not False",
    "step._replace(ended=np.zeros(3, bool))": r"ended must be .*not an array \[3\] of bool",
    "step._replace(observation=step.observation * np.nan)": "observation holds nan",
    "tuple(step)": "step returned .*not a rulescope.envs.environment.Step",
}


@pytest.mark.parametrize("returned", UNSOUND)
def test_a_world_that_breaks_the_contract_stops_the_run(
    returned: str, site: Site, tmp_path: Path
) -> None:
    site.world(FAULTY.replace("RETURNED", returned), "faulty", "Faulty")
    run = short(A2C(), environment=pin_plugin_world("faulty"))
    with pytest.raises(WorldError, match=f"iteration 1: the world 'faulty': {UNSOUND[returned]}"):
        find_or_make(run, Store(tmp_path / "store"))
    assert run.id not in Store(tmp_path / "store")


def test_a_world_that_keeps_the_contract_is_left_as_it_is(site: Site) -> None:
    site.world(FAULTY.replace("RETURNED", "step"), "faulty", "Faulty")
    run = short(A2C(), environment=pin_plugin_world("faulty"))
    own = msgspec.structs.replace(run, environment=Catch(rows=5, columns=5))
    logs = []
    for each in (run, own):
        life = Lifetime(each)
        life.run()
        logs.append(life.log())
    for name in logs[1]:
        np.testing.assert_array_equal(logs[0][name], logs[1][name])


@pytest.mark.parametrize(
    "source",
    [
        f"import sys\nsys.exit(0)\n{OUTRIGHT}",
        OUTRIGHT.replace("self.setup = setup", "import sys; sys.exit(0)"),
        OUTRIGHT.replace(
            "return {}\n\nclass Nameless", "import sys; sys.exit(0)\n\nclass Nameless"
        ),
    ],
    ids=["imported", "made", "learning"],
)
def test_a_rule_that_exits_is_a_failure_wherever_it_does(
    source: str, site: Site, tmp_path: Path
) -> None:
    assert "exit" in source
    site.rule(source, "still", "Still")
    program = "from rulescope.cli.main import run; run()"
    command = [sys.executable, "-c", program, "life", "--learner", "still"]
    options = ["--iterations", "20", "--store", str(tmp_path / "store"), "--json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "called sys.exit(0)" in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_a_rule_that_exits_fails_in_a_worker_too_and_once(site: Site, tmp_path: Path) -> None:
    learning = "return {}\n\nclass Nameless"
    source = OUTRIGHT.replace(learning, "import sys; sys.exit(0)\n\nclass Nameless")
    site.rule(source, "still", "Still")
    run = short(msgspec.structs.replace(pin_rule("still")))
    campaign = run_all([run], Store(tmp_path / "store"), workers=1)
    assert "called sys.exit(0)" in campaign.failed[run.id]
    assert len(campaign.causes[run.id]) == 1


def test_a_manifest_names_the_packages_of_a_rule_declared_or_not(site: Site) -> None:
    site.rule(f"import fake_jax\nfrom another import THING\n{RULE}")
    site.offer("fake-jax", {"fake_jax/__init__.py": ""}, {})
    site.offer("Needed.Things", {"needed/__init__.py": ""}, {})
    site.offer("another", {"another.py": "class Thing: pass\nTHING = Thing()\n"}, {})
    for name, top in (
        ("fake_jax", "fake_jax"),
        ("Needed.Things", "needed"),
        ("another", "another"),
    ):
        (site.folder / f"{name}-1.0.dist-info" / "top_level.txt").write_text(f"{top}\n")
    declared = site.folder / "rules_of_others-1.0.dist-info" / "METADATA"
    declared.write_text(
        f"{declared.read_text()}Requires-Dist: needed-things>=1\nRequires-Dist: numpy\n"
        'Requires-Dist: pytest; extra == "test"\nRequires-Dist: not-installed\n'
    )
    run_packages._installed.cache_clear()
    run_packages._providers.cache_clear()
    run_packages._distributions_of.cache_clear()
    run = short(pin_rule("counted"))
    assert run_packages.find_declared(run) == {
        "package_needed_things": "1.0",
        "package_rules_of_others": "1.0",
    }
    life = Lifetime(run)
    life.run()
    runtime = life.record().manifest.runtime
    assert {name for name in runtime if name.startswith("package_")} == {
        "package_another",
        "package_fake_jax",
        "package_needed_things",
        "package_rules_of_others",
    }
    assert runtime["native_threads"] == run_packages._native_threads()
    assert "native_threads" not in run_packages.find_used(short(A2C()))


def test_threads_are_recorded_as_they_are_at_the_end(site: Site, tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    site.rule(RULE.replace("weight =", "torch.set_num_threads(2)\n        weight ="))
    run, store = short(pin_rule("counted")), Store(tmp_path / "store")
    try:
        with pytest.raises(Paused):
            find_or_make(run, store, stop_after=2)
        seen: list[int] = []
        record = find_or_make(run, store, report=lambda now: seen.append(now.iteration))
    finally:
        torch.set_num_threads(threads)
    assert record.manifest.runtime["threads"] == 2
    assert seen == [3, 4], "the checkpoint is continued all the same"
