"""Views by name, and validation of requests."""

from __future__ import annotations

import pytest

from rulescope.core.errors import SpecError
from rulescope.mechanism.view_request import ViewRequest, validate_request
from rulescope.mechanism.views import VIEWS, find_view


@pytest.mark.parametrize(
    ("invalid", "message"),
    [
        (ViewRequest("random:0", (1.0,), 0, 80), "--seeds: 0"),
        (ViewRequest("random:0", (-1.0,), 1, 80), "--scales: -1 is not between"),
        (ViewRequest("random:0", (1.0,), 1, 30), "--iterations: 30 .* nearest: 34"),
        (
            ViewRequest("random:0", (0.1234567, 10.0), 1, 80),
            r"--scales: 0\.1234567 has more than six digits; nearest: 0\.123457$",
        ),
        (ViewRequest("random:0", (1.0, 1.0000001), 1, 80), r"--scales: 1\.0000001 .* nearest: 1$"),
    ],
)
def test_an_invalid_request_is_refused(invalid: ViewRequest, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        validate_request(invalid)


def test_views_are_found_by_name() -> None:
    assert find_view("replay") is VIEWS["replay"]
    with pytest.raises(SpecError, match=r"trajectry.*nearest: 'trajectory'"):
        find_view("trajectry")


def test_default_requests_are_valid_and_have_runs() -> None:
    for view in VIEWS.values():
        assert validate_request(view.default_request) == view.default_request
        assert view.stages(view.default_request)
