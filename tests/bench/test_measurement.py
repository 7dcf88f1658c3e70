from benchmarks.measurement import STANDARD, Spread, scaling_settings


def test_a_spread_is_the_median_with_quartiles() -> None:
    assert Spread.of([4.0, 1.0, 2.0, 3.0, 5.0]) == Spread(median=3.0, q1=2.0, q3=4.0)


def test_scaling_settings_vary_one_size_at_a_time() -> None:
    first, *others = scaling_settings()
    assert first == STANDARD
    for setting in others:
        assert sum(setting[name] != first[name] for name in first) == 1
