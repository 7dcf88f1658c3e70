import errno
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rulescope.core.errors import WeightsError
from rulescope.rules import released_rules, weight_files
from rulescope.rules.released_rules import Rule

GOOD, BAD = b"the released weights", b"some other weights!!"
RULE = Rule(
    name="tiny",
    architecture="open",
    file="open/tiny_OPEN.npy",
    url="http://127.0.0.1:9/tiny_OPEN.npy",  # nothing listens on the discard port
    sha256=hashlib.sha256(GOOD).hexdigest(),
    size=len(GOOD),
    parameters=5,
    description="a rule for tests",
)


class Places(NamedTuple):
    """The folders searched, in a world of their own."""

    top: Path
    named: Path
    cache: Path
    local: Path
    shared: Path

    def listing(self) -> list[str]:
        return sorted(str(path.relative_to(self.top)) for path in self.top.rglob("*"))


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """Set cache, current directory and environment to empty ones below ``tmp_path``."""
    home = tmp_path / "project"
    home.mkdir()
    found = Places(
        tmp_path,
        tmp_path / "named",
        tmp_path / "cache",
        home / "weights",
        tmp_path / "shared" / "weights",
    )
    monkeypatch.chdir(home)
    monkeypatch.delenv(weight_files.VARIABLE, raising=False)
    monkeypatch.setattr(weight_files, "cache_folder", lambda: found.cache)
    monkeypatch.setattr(weight_files, "_checkout", list)
    return found


def put(path: Path, content: bytes = GOOD) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


# --- searching ----------------------------------------------------------------------------------


def test_nothing_is_found_where_nothing_is(places: Places) -> None:
    before = places.listing()
    assert weight_files.find(RULE) is None
    assert places.listing() == before


def test_search_order(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill the places from the last to the first: each new one takes over."""
    monkeypatch.setenv(weight_files.VARIABLE, str(places.named))
    places.named.mkdir()
    for folder in (places.shared, places.local, places.cache, places.named):
        path = put(folder / RULE.file)
        assert weight_files.find(RULE) == path
    explicit = put(places.top / "elsewhere" / "renamed.npy")
    assert weight_files.find(RULE, explicit) == explicit
    every = [folder / RULE.file for folder in places[1:]]
    assert list(weight_files.copies(RULE)) == every


def test_the_sub_folder_may_be_left_out(places: Places) -> None:
    path = put(places.local / RULE.basename)
    assert weight_files.find(RULE) == path
    assert weight_files.find(RULE, places.local) == path


def test_a_source_checkout_is_searched_from_its_root(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = places.top / "checkout" / "repository"
    path = put(root.parent / "shared" / "weights" / RULE.file)
    root.mkdir()
    assert weight_files.find(RULE) is None
    monkeypatch.setattr(weight_files, "_checkout", lambda: [root])
    assert weight_files.find(RULE) == path


def test_explicit_paths_may_be_a_file_or_a_folder(places: Places) -> None:
    path = put(places.top / "some" / RULE.file)
    assert weight_files.find(RULE, path) == path
    assert weight_files.find(RULE, places.top / "some") == path
    assert weight_files.find(RULE, places.top / "some" / "open") == path


def test_an_explicit_path_without_the_rule_is_no_reason_to_look_elsewhere(places: Places) -> None:
    put(places.cache / RULE.file)
    places.local.mkdir()
    for wrong in (places.top / "nowhere", places.local):
        with pytest.raises(WeightsError, match="no weights of tiny here") as caught:
            weight_files.find(RULE, wrong)
        assert str(caught.value).startswith(f"{wrong}: ")


def test_the_variable_may_name_a_file(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(places.named / "renamed.npy")
    monkeypatch.setenv(weight_files.VARIABLE, str(path))
    assert weight_files.find(RULE) == path


def test_the_variable_naming_another_rule_is_passed_over(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = put(places.cache / RULE.file)
    monkeypatch.setenv(weight_files.VARIABLE, str(put(places.named / "disco_103.npz")))
    assert weight_files.find(RULE) == cached


def test_the_variable_naming_nothing_is_an_error(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(weight_files.VARIABLE, str(places.top / "nowhere"))
    with pytest.raises(WeightsError, match=r"\$RULESCOPE_WEIGHTS names .*nowhere"):
        weight_files.find(RULE)


# --- wrong files --------------------------------------------------------------------------------


def test_a_wrong_hash_is_an_error_even_if_a_good_copy_comes_later(places: Places) -> None:
    wrong = put(places.cache / RULE.file, BAD)
    put(places.shared / RULE.file)
    with pytest.raises(WeightsError) as caught:
        weight_files.find(RULE)
    message = str(caught.value)
    assert message.startswith(f"{wrong}: ")
    assert hashlib.sha256(BAD).hexdigest()[:12] in message
    assert RULE.sha256[:12] in message
    assert "delete it" in message
    assert "`rulescope weights fetch tiny`" in message


@pytest.mark.parametrize("explicit", [True, False])
def test_wrong_hashes_in_named_places(
    places: Places, monkeypatch: pytest.MonkeyPatch, explicit: bool
) -> None:
    wrong = put(places.named / "mine.npy", BAD)
    if not explicit:
        monkeypatch.setenv(weight_files.VARIABLE, str(wrong))
    with pytest.raises(WeightsError, match=r"mine\.npy: not the released weights of tiny"):
        weight_files.find(RULE, wrong if explicit else None)


def test_another_rules_good_file_is_recognised(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(RULE, name="other", sha256=hashlib.sha256(BAD).hexdigest())
    monkeypatch.setattr(released_rules, "RULES", {"other": other})
    path = put(places.named / "mine.npy", BAD)
    with pytest.raises(WeightsError, match="these are the weights of other"):
        weight_files.find(RULE, path)


def test_a_folder_in_the_place_of_the_file_is_an_error(places: Places) -> None:
    (places.local / RULE.file).mkdir(parents=True)
    with pytest.raises(WeightsError, match=r"tiny_OPEN\.npy: is not a file"):
        weight_files.find(RULE)


# --- downloading --------------------------------------------------------------------------------


class Server(NamedTuple):
    rule: Rule
    """``RULE`` with this server's address."""
    answer: dict[str, Any]
    """What the server will say: ``status`` and ``body``."""
    requests: list[str]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Serve one file on 127.0.0.1."""
    answer: dict[str, Any] = {"status": 200, "body": GOOD}
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            self.send_response(answer["status"])
            self.send_header("Content-Length", str(len(answer["body"])))
            self.end_headers()
            self.wfile.write(answer["body"])

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        url = f"http://127.0.0.1:{http.server_port}/tiny_OPEN.npy"
        yield Server(replace(RULE, url=url), answer, requests)
        http.shutdown()
        thread.join()


def test_a_missing_file_is_downloaded_once(places: Places, server: Server) -> None:
    seen: list[tuple[int, int]] = []
    path = weight_files.ensure(server.rule, progress=lambda done, total: seen.append((done, total)))
    assert path == places.cache / RULE.file
    assert path.read_bytes() == GOOD
    assert seen[-1] == (len(GOOD), len(GOOD))
    assert weight_files.ensure(server.rule) == path
    assert server.requests == ["/tiny_OPEN.npy"]


def test_wrong_bytes_are_not_kept(places: Places, server: Server) -> None:
    server.answer["body"] = BAD
    before = places.listing()
    with pytest.raises(WeightsError, match="other bytes than the released file"):
        weight_files.ensure(server.rule)
    assert places.listing() == before


def test_a_flood_is_cut_off(places: Places, server: Server) -> None:
    server.answer["body"] = bytes(1 << 20)
    before = places.listing()
    with pytest.raises(WeightsError, match="more bytes than the file has"):
        weight_files.ensure(server.rule)
    assert places.listing() == before


def test_a_trickle_is_cut_off(
    places: Places, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weight_files, "DEADLINE", -1.0)
    before = places.listing()
    with pytest.raises(WeightsError, match="not complete after"):
        weight_files.ensure(server.rule)
    assert places.listing() == before


def test_the_servers_refusal_is_reported(places: Places, server: Server) -> None:
    server.answer.update(status=404, body=b"no")
    before = places.listing()
    with pytest.raises(WeightsError, match="the server answered 404 Not Found"):
        weight_files.ensure(server.rule)
    assert places.listing() == before


def fails_with(monkeypatch: pytest.MonkeyPatch, fault: BaseException) -> None:
    """Make every download fail as without a network; a few bytes have come before it did."""

    class Broken:
        def __init__(self, *, timeout: float, **_: Any) -> None:
            assert timeout == 30, "a download must never wait for ever"

        def __call__(self, _url: str, output: str, _pooch: Any) -> None:
            Path(output).write_bytes(GOOD[:3])
            raise fault

    monkeypatch.setattr("pooch.HTTPDownloader", Broken)


def test_without_a_network_the_error_names_all_that_is_needed(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails_with(monkeypatch, OSError(errno.ENETUNREACH, "Network is unreachable"))
    places.named.mkdir()
    monkeypatch.setenv(weight_files.VARIABLE, str(places.named))
    before = places.listing()
    with pytest.raises(WeightsError, match="Network is unreachable") as caught:
        weight_files.ensure(RULE)
    message = str(caught.value)
    for searched in places[1:]:
        assert str(searched) in message
    assert RULE.url in message
    assert f"save that file as {places.cache / RULE.file}" in message
    assert "set RULESCOPE_WEIGHTS to it" in message
    assert places.listing() == before


def test_a_refused_connection_is_reported_in_a_few_words(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    before = places.listing()
    with pytest.raises(WeightsError, match=r"no connection \(ConnectionError\)"):
        weight_files.ensure(RULE)
    assert places.listing() == before


def test_an_interrupted_download_leaves_nothing(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails_with(monkeypatch, KeyboardInterrupt())
    before = places.listing()
    with pytest.raises(KeyboardInterrupt):
        weight_files.ensure(RULE)
    assert places.listing() == before


def test_a_cache_that_cannot_be_written_is_reported(places: Places, server: Server) -> None:
    places.cache.write_bytes(b"in the way")
    with pytest.raises(WeightsError, match="could not be fetched"):
        weight_files.fetch(server.rule)
    assert places.cache.read_bytes() == b"in the way"


def test_no_download_when_it_is_forbidden(places: Places, server: Server) -> None:
    with pytest.raises(WeightsError, match="the weights of tiny are not here"):
        weight_files.ensure(server.rule, download=False)
    assert server.requests == []
    assert not places.cache.exists()


def test_fetch_replaces_a_damaged_copy_in_the_cache(places: Places, server: Server) -> None:
    path = put(places.cache / RULE.file, BAD)
    assert weight_files.fetch(server.rule) == path
    assert path.read_bytes() == GOOD


def test_a_failed_fetch_keeps_what_the_cache_had(places: Places, server: Server) -> None:
    path = put(places.cache / RULE.file, BAD)
    server.answer["body"] = b"worse"
    with pytest.raises(WeightsError):
        weight_files.fetch(server.rule)
    assert path.read_bytes() == BAD
    assert list(path.parent.iterdir()) == [path]


def test_fetch_can_copy_a_local_file(places: Places) -> None:
    source = put(places.named / RULE.basename)
    path = weight_files.fetch(RULE, source=places.named)
    assert path == places.cache / RULE.file
    assert path.read_bytes() == source.read_bytes() == GOOD
