"""The pytest plugin: fixtures `kata` and `speed`, cases from the spec, one record for each thing that happens.

Registered by entry point, so every pytest run of an environment that holds this package loads it. It therefore
imports nothing heavy and does nothing until a test beside a `kata.toml` is collected.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from checker.cases import Case, Probe, Refusal
    from checker.catalog import SpeedCase
    from checker.kata_session import KataSession

_ORDER = ("values", "numerics", "predictions", "fairness", "speed")
"""The order of tests, and the names a `stage` marker may have."""

_SESSIONS: pytest.StashKey[dict[Path, KataSession]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options that `kata check` passes on; they serve a plain pytest run as well."""
    group = parser.getgroup("kata", "checking katas")
    group.addoption("--kata-file", metavar="FILE", help="check FILE in place of the kata's kernel.py")
    group.addoption("--kata-seed", type=int, metavar="N", help="repeat the inputs of an earlier run")
    group.addoption("--kata-quick", action="store_true", help="only the cases that are marked quick")
    group.addoption("--kata-reveal", action="store_true", help="show the truth of predictions that are wrong")
    group.addoption(
        "--kata-device", *_free(parser, "--device"), default="auto", choices=["auto", "virtual", "cuda"],
        help="what computes values and takes times; the memory stages always run on the virtual GPU",
    )  # fmt: skip
    group.addoption("--kata-limit", type=float, default=20.0, metavar="S", help="seconds a case may take")
    group.addoption("--kata-records", metavar="TARGET", help="write records to a file, or to a descriptor's number")
    group.addoption("--kata-nonce", default="", help="put this into every record")
    group.addoption("--gpu", default="h200", metavar="NAME", help="the chip that the virtual GPU stands for")


def _free(parser: pytest.Parser, name: str) -> list[str]:
    """The option's name, unless another plugin has taken it."""
    groups = (*parser._groups, parser._anonymous)
    return [] if any(name in option.names() for group in groups for option in group.options) else [name]


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker; `--strict-markers` would refuse it otherwise."""
    config.addinivalue_line("markers", "stage(name): the stage of a kata's check that a test belongs to")
    config.stash[_SESSIONS] = {}


def _session(config: pytest.Config, path: Path) -> KataSession | None:
    """The session of the kata whose folder holds a test file, made on first use; None for any other test."""
    folder = path.parent
    if not (folder / "kata.toml").is_file():
        return None
    sessions = config.stash[_SESSIONS]
    if folder not in sessions:
        from checker.kata_session import KataSession

        sessions[folder] = KataSession(folder, config)
    return sessions[folder]


def _stage(node: Any) -> str:
    marker = node.get_closest_marker("stage")
    if marker is not None:
        stage = str(marker.args[0])
        if stage not in _ORDER:
            raise pytest.UsageError(f"{node.nodeid}: stage {stage!r}; it must be one of {', '.join(_ORDER)}")
        return stage
    return "speed" if "speed" in getattr(node, "fixturenames", ()) else "values"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per case and per probe of the stage, and one per refusal."""
    if not {"kata", "speed"} & set(metafunc.fixturenames):
        return
    session = _session(metafunc.config, Path(metafunc.definition.path))
    if session is None:
        return
    if "case" in metafunc.fixturenames:
        stage = _stage(metafunc.definition)
        cases = session.speed_cases() if stage == "speed" else session.cases(stage)
        metafunc.parametrize("case", cases, ids=[case.id for case in cases])
    if "refusal" in metafunc.fixturenames:
        refusals = session.refusals()
        metafunc.parametrize("refusal", refusals, ids=[refusal.id for refusal in refusals])
    if "probe" in metafunc.fixturenames:
        probes = session.probes(_stage(metafunc.definition))
        metafunc.parametrize("probe", probes, ids=[probe.id for probe in probes])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put a kata's tests in the order of its stages, each kata in one piece."""
    ours = [item for item in items if _session(config, item.path) is not None]
    if not ours:
        return
    places = [index for index, item in enumerate(items) if item in set(ours)]
    folders = list(dict.fromkeys(item.path.parent for item in ours))
    ours.sort(key=lambda item: (folders.index(item.path.parent), _ORDER.index(_stage(item))))
    for index, item in zip(places, ours, strict=True):
        items[index] = item
    for folder in folders:
        session = config.stash[_SESSIONS][folder]
        session.collected([_describe(item) for item in ours if item.path.parent == folder])


def _describe(item: pytest.Item) -> dict[str, Any]:
    """What a record says of a test: its id, its name as a sentence, its stage, its case."""
    call = getattr(item, "callspec", None)
    case = call.params.get("case") or call.params.get("probe") if call is not None else None
    name = getattr(item, "originalname", None) or item.name
    return {
        "test": item.nodeid,
        "name": name.removeprefix("test_").replace("_", " "),
        "stage": _stage(item),
        "case": case.id if case is not None and hasattr(case, "id") else None,
    }


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what a red stage stops; say that the others start."""
    session = _session(item.config, item.path)
    if session is None:
        return
    reason = session.stopped(_stage(item))
    if reason:
        pytest.skip(reason)
    session.start(_describe(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Record how a test ended: its own outcome, or a fault while it was set up."""
    report = yield
    session = _session(item.config, item.path)
    if session is not None and (report.when == "call" or (report.when == "setup" and not report.passed)):
        session.end(item.nodeid, _stage(item), report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A kata whose tests cannot even be collected says so in its records."""
    report = yield
    if report.failed and isinstance(collector, pytest.Module):
        session = _session(collector.config, collector.path)
        if session is not None:
            session.fault("the kata's own tests could not be collected", str(report.longrepr))
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Close each kata's records. A run that was interrupted gets no `done`."""
    for kata in session.config.stash[_SESSIONS].values():
        kata.finish(int(session.exitstatus))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """In a plain pytest run, show each kata's report: the same that `kata check` shows."""
    for session in config.stash[_SESSIONS].values():
        text = session.report_text(color=bool(getattr(terminalreporter, "hasmarkup", False)))
        if text:
            terminalreporter.write_line("")
            terminalreporter.write_line(text)


class KataUnderTest:
    """The fixture `kata`: the learner's file, ready to be judged. A finding fails the test."""

    def __init__(self, session: KataSession, nodeid: str) -> None:
        self._session = session
        self._nodeid = nodeid

    def check(self, case: Case) -> None:
        """Run the entry point on a case on the virtual GPU: compile, memory, values and numerics."""
        self._session.judge(self._nodeid, "case", case)

    def check_refusal(self, refusal: Refusal) -> None:
        """Call the entry point with something it must refuse."""
        self._session.judge(self._nodeid, "refusal", refusal)

    def check_probe(self, probe: Probe) -> None:
        """Try something on the learner's module as a whole."""
        self._session.judge(self._nodeid, "probe", probe)

    def check_predictions(self) -> None:
        """Compare the learner's predictions with what running, tracing or compiling shows."""
        self._session.judge(self._nodeid, "predictions", None)

    def check_fairness(self) -> None:
        """Ask whose work the results of all cases were, and call again on the same memory with other data."""
        self._session.judge(self._nodeid, "fairness", None)


@pytest.fixture
def kata(request: pytest.FixtureRequest) -> KataUnderTest:
    """The kata whose folder holds the test file."""
    session = _session(request.config, request.node.path)
    if session is None:
        pytest.fail(f"there is no kata.toml beside {request.node.path}", pytrace=False)
    return KataUnderTest(session, request.node.nodeid)


class SpeedUnderTest:
    """The fixture `speed`: times the learner's file on a speed case. Too slow a kernel fails the test."""

    def __init__(self, session: KataSession, request: pytest.FixtureRequest) -> None:
        self._session = session
        self._request = request

    def check(self, case: SpeedCase | None = None) -> None:
        """Time one case of kata.toml in rounds of pytest-benchmark, and apply its threshold."""
        if case is None:
            pytest.skip("this kata ties nothing to speed")
        self._session.judge(self._request.node.nodeid, "speed", (case, self._rounds))

    def _rounds(self, setup: Callable[[], Any], call: Callable[..., Any], timer: Callable[[], Any]) -> list[float]:
        """Rounds by pytest-benchmark's pedantic mode on the device's clock; plain ones where it is not loaded."""
        from checker.timing import plain_rounds

        count = 11 if self._session.device == "cuda" else 3
        if not self._request.config.pluginmanager.hasplugin("pytest-benchmark"):
            return plain_rounds(setup, call, timer, count)
        benchmark = self._request.getfixturevalue("benchmark")
        # Public options take a timer by name, before there is a device to ask.
        benchmark._timer = timer
        benchmark.pedantic(call, setup=setup, rounds=count, iterations=1)
        return [float(seconds) for seconds in benchmark.stats.stats.data]


@pytest.fixture
def speed(request: pytest.FixtureRequest) -> SpeedUnderTest:
    """Times on the virtual GPU's clock, or on a real GPU's."""
    session = _session(request.config, request.node.path)
    if session is None:
        pytest.fail(f"there is no kata.toml beside {request.node.path}", pytrace=False)
    if request.config.getoption("benchmark_disable", False) or request.config.getoption("benchmark_skip", False):
        pytest.skip("benchmarks are switched off")
    return SpeedUnderTest(session, request)
