"""Plan files: the message and the place of every error; settings and defaults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.paths import TESTS

from dsms import PlanError, plan_from, read_plan, simulate

Refuse = Callable[..., None]

STREAM = "[streams.s]\n"
QUERY = '[queries.q]\nfrom = "s"\noperators = [{ name = "o1", cost = 1.0 }, { name = "o2", cost = 1.0 }]\n'
OPERATOR_KEYS = "['cost', 'function', 'inputs', 'name', 'selectivity', 'size', 'startup', 'take']"
NAMES = "cannot be a name: no spaces and none of . , : = [ ]"


@pytest.fixture
def refuse(tmp_path: Path) -> Refuse:
    """Write a plan file, and check that reading it fails with exactly this message, at this place, in this file."""

    def check(text: str, place: str, message: str) -> None:
        file = tmp_path / "plan.toml"
        file.write_text(text, encoding="utf-8")
        with pytest.raises(PlanError) as caught:
            read_plan(file)
        assert str(caught.value) == ": ".join(part for part in (str(file), place, message) if part)
        assert (caught.value.file, caught.value.place) == (str(file), place)

    return check


def second(operator: str) -> str:
    """A plan file whose second operator is this one."""
    return f'{STREAM}[queries.q]\nfrom = "s"\noperators = [{{ name = "o1", cost = 1.0 }}, {{ {operator} }}]\n'


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError) as caught:
        read_plan(tmp_path / "nowhere.toml")
    assert str(caught.value) == f"{tmp_path / 'nowhere.toml'}: cannot be read: No such file or directory"


def test_a_folder_is_not_a_plan(tmp_path: Path) -> None:
    with pytest.raises(PlanError) as caught:
        read_plan(tmp_path)
    assert str(caught.value) == f"{tmp_path}: cannot be read: Is a directory"


def test_a_file_that_is_not_utf8_says_at_which_byte(tmp_path: Path) -> None:
    file = tmp_path / "latin.toml"
    file.write_bytes("[streams.é]".encode("latin-1"))
    with pytest.raises(PlanError) as caught:
        read_plan(file)
    assert str(caught.value) == f"{file}: is not UTF-8 text: invalid continuation byte at byte 9"


def test_a_syntax_error_has_line_and_column(refuse: Refuse) -> None:
    refuse("[streams.s]\nsize = = 3\n", "", "is not TOML: Invalid value (at line 2, column 8)")


def test_a_table_given_twice_is_a_syntax_error(refuse: Refuse) -> None:
    refuse(STREAM + STREAM, "", "is not TOML: Cannot declare ('streams', 's') twice (at line 2, column 11)")


def test_zero_cost_without_startup_is_refused(refuse: Refuse) -> None:
    message = "cost is zero and there is no startup: one of the two must be positive"
    refuse(second('name = "o2", cost = 0'), "queries.q.operators[1].cost", message)
    refuse(second('name = "o2", cost = 0.0, startup = 0'), "queries.q.operators[1].cost", message)


def test_no_cost_at_all_is_refused(refuse: Refuse) -> None:
    message = "missing: an operator needs a cost, the time for one input tuple (or a `startup`)"
    refuse(second('name = "o2", selectivity = 0.5'), "queries.q.operators[1].cost", message)


@pytest.mark.parametrize("key", ["cost", "selectivity", "startup"])
def test_a_negative_figure_is_refused(refuse: Refuse, key: str) -> None:
    figures = {"cost": 1.0} | {key: -0.5}
    text = ", ".join(f"{name} = {value}" for name, value in figures.items())
    refuse(second(f'name = "o2", {text}'), f"queries.q.operators[1].{key}", "-0.5 is not a number from 0")


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("key", ["cost", "selectivity", "startup"])
def test_a_figure_that_is_not_finite_is_refused(refuse: Refuse, key: str, value: str) -> None:
    figures = {"cost": "1.0"} | {key: value}
    text = ", ".join(f"{name} = {given}" for name, given in figures.items())
    message = f"{value} is not a number from 0"
    refuse(second(f'name = "o2", {text}'), f"queries.q.operators[1].{key}", message)


@pytest.mark.parametrize(("value", "shown"), [("0", "0"), ("-1", "-1"), ("nan", "nan"), ("inf", "inf")])
@pytest.mark.parametrize("key", ["take", "size"])
def test_take_and_size_of_an_operator_are_positive(refuse: Refuse, key: str, value: str, shown: str) -> None:
    message = f"{shown} is not a positive number"
    refuse(second(f'name = "o2", cost = 1, {key} = {value}'), f"queries.q.operators[1].{key}", message)


@pytest.mark.parametrize("key", ["cost", "selectivity", "startup", "take", "size"])
def test_a_figure_is_a_number(refuse: Refuse, key: str) -> None:
    figures = {"name": "'o2'", "cost": "1"}
    for value, shown in (('"3"', "'3'"), ("true", "True"), ("[1.0]", "[1.0]")):
        text = ", ".join(f"{name} = {given}" for name, given in (figures | {key: value}).items())
        expected = "a positive number" if key in ("take", "size") else "a number from 0"
        refuse(second(text), f"queries.q.operators[1].{key}", f"{shown} is not {expected}")


def test_a_number_too_large_for_a_float_is_refused_like_an_infinite_one(tmp_path: Path) -> None:
    huge = "1" + "0" * 400
    places = {
        "queries.q.operators[1].cost": second(f'name = "o2", cost = {huge}'),
        "queries.q.weight": STREAM + QUERY + f"weight = {huge}",
        "streams.s.size": f"{STREAM}size = {huge}\n{QUERY}",
        "run.until": STREAM + QUERY + f"[run]\nuntil = {huge}",
    }
    for place, text in places.items():
        (tmp_path / "plan.toml").write_text(text)
        with pytest.raises(PlanError) as caught:
            read_plan(tmp_path / "plan.toml")
        assert caught.value.place == place


@pytest.mark.parametrize(("value", "shown"), [("0", "0"), ("-2.5", "-2.5"), ("nan", "nan"), ("inf", "inf")])
def test_a_stream_has_a_positive_size(refuse: Refuse, value: str, shown: str) -> None:
    refuse(f"{STREAM}size = {value}\n{QUERY}", "streams.s.size", f"{shown} is not a positive number")


@pytest.mark.parametrize(("value", "shown"), [("0", "0"), ("-1.0", "-1.0"), ("nan", "nan"), ("inf", "inf")])
def test_a_query_has_a_positive_weight(refuse: Refuse, value: str, shown: str) -> None:
    refuse(f"{STREAM}{QUERY}weight = {value}\n", "queries.q.weight", f"{shown} is not a positive number")


def test_a_weight_is_a_number(refuse: Refuse) -> None:
    refuse(f'{STREAM}{QUERY}weight = "heavy"\n', "queries.q.weight", "'heavy' is not a positive number")


def test_an_unknown_input_lists_what_exists_and_suggests_the_nearest(refuse: Refuse) -> None:
    message = "operator 'o2' reads from 'o11': no such stream or operator (did you mean 'o1'?); there are ['o1', 's']"
    refuse(second('name = "o2", cost = 1, inputs = ["o11"]'), "queries.q.operators[1]", message)


def test_an_unknown_input_lists_the_operators_of_other_queries_by_their_full_names(refuse: Refuse) -> None:
    other = '[queries.r]\noperators = [{ name = "x", cost = 1, inputs = ["p1"] }]\n'
    message = "operator 'x' reads from 'p1': no such stream or operator; there are ['q.o1', 'q.o2', 's']"
    refuse(STREAM + QUERY + other, "queries.r.operators[0]", message)


def test_an_unknown_stream_in_from_is_placed_at_from(refuse: Refuse) -> None:
    message = "operator 'o1' reads from 'ss': no such stream or operator (did you mean 's'?); there are ['o2', 's']"
    refuse(STREAM + QUERY.replace('"s"', '"ss"'), "queries.q.from", message)


def test_an_input_that_two_other_queries_have_is_ambiguous(refuse: Refuse) -> None:
    queries = "".join(f'[queries.{n}]\nfrom = "s"\noperators = [{{ name = "o", cost = 1 }}]\n' for n in "ab")
    reader = '[queries.c]\noperators = [{ name = "x", cost = 1, inputs = ["o"] }]\n'
    message = "operator 'x' reads from 'o', which may be any of ['a.o', 'b.o']"
    refuse(STREAM + queries + reader, "queries.c.operators[0]", message)


def test_no_inputs_and_no_from_is_refused(refuse: Refuse) -> None:
    message = "no inputs: the query has no `from` and there is no operator before this one"
    refuse(STREAM + QUERY.replace('from = "s"\n', ""), "queries.q.operators[0]", message)


def test_an_empty_list_of_inputs_is_refused(refuse: Refuse) -> None:
    message = "[] is not a list of names of streams or operators"
    refuse(second('name = "o2", cost = 1, inputs = []'), "queries.q.operators[1].inputs", message)


def test_inputs_are_names(refuse: Refuse) -> None:
    message = "is not a list of names of streams or operators"
    refuse(second('name = "o2", cost = 1, inputs = [1]'), "queries.q.operators[1].inputs", f"[1] {message}")
    refuse(second('name = "o2", cost = 1, inputs = 7'), "queries.q.operators[1].inputs", f"7 {message}")


def test_from_is_a_name_or_names(refuse: Refuse) -> None:
    message = "3 is not a list of names of streams or operators"
    refuse(STREAM + QUERY.replace('from = "s"', "from = 3"), "queries.q.from", message)


def test_the_same_input_twice_is_refused(refuse: Refuse) -> None:
    message = "['s', 's'] names an input twice"
    refuse(second('name = "o2", cost = 1, inputs = ["s", "s"]'), "queries.q.operators[1].inputs", message)


def test_two_operators_of_a_query_with_one_name_are_refused(refuse: Refuse) -> None:
    message = "two operators of query 'q' are called 'o1'"
    refuse(second('name = "o1", cost = 1'), "queries.q.operators[1].name", message)


def test_an_operator_named_like_a_stream_is_refused(refuse: Refuse) -> None:
    message = "operator 's' has the name of a stream: inputs could mean either"
    refuse(second('name = "s", cost = 1'), "queries.q.operators[1].name", message)


def test_an_operator_has_a_name(refuse: Refuse) -> None:
    message = "missing: every operator needs a name, a string that no other operator has"
    refuse(second("cost = 1"), "queries.q.operators[1].name", message)
    refuse(second("name = 2, cost = 1"), "queries.q.operators[1].name", message)


@pytest.mark.parametrize("name", ["a.b", "a b", "a\tb", "", "a,b", "a:b", "a=b", "a[0]"])
def test_a_name_has_no_spaces_dots_or_signs_that_mean_something_elsewhere(refuse: Refuse, name: str) -> None:
    quoted = '"' + name.replace("\t", "\\t") + '"'
    message = f"{name!r} {NAMES}"
    refuse(second(f"name = {quoted}, cost = 1"), "queries.q.operators[1].name", message)
    refuse(f"[streams.{quoted}]\n{QUERY}", f"streams.{name}", message)
    refuse(STREAM + QUERY.replace("queries.q", f"queries.{quoted}"), f"queries.{name}", message)


def test_a_cycle_is_shown_the_way_tuples_would_go(refuse: Refuse) -> None:
    operators = (
        '{ name = "a", cost = 1, inputs = ["s", "c"] }, { name = "b", cost = 1 }, { name = "c", cost = 1 }, '
        '{ name = "d", cost = 1 }'
    )
    message = "operators read from each other in a cycle: a -> b -> c -> a"
    refuse(f"{STREAM}[queries.q]\noperators = [{operators}]\n", "", message)


def test_an_operator_that_reads_itself_is_a_cycle(refuse: Refuse) -> None:
    message = "operators read from each other in a cycle: o2 -> o2"
    refuse(second('name = "o2", cost = 1, inputs = ["o1", "o2"]'), "", message)


def test_a_cycle_through_two_queries_has_full_names_where_short_ones_are_not_unique(refuse: Refuse) -> None:
    queries = (
        '[queries.a]\noperators = [{ name = "o", cost = 1, inputs = ["s", "b.o"] }]\n'
        '[queries.b]\noperators = [{ name = "o", cost = 1, inputs = ["a.o"] }]\n'
    )
    refuse(STREAM + queries, "", "operators read from each other in a cycle: a.o -> b.o -> a.o")


def test_an_unknown_table_is_refused(refuse: Refuse) -> None:
    message = (
        "no such key (did you mean 'streams'?); "
        "there are ['adaptive', 'functions', 'live', 'qos', 'queries', 'relations', 'run', 'streams']"
    )
    refuse("[stream.s]\n" + QUERY, "stream", message)


def test_an_unknown_key_of_a_stream_is_refused(refuse: Refuse) -> None:
    message = (
        "no such key (did you mean 'size'?); "
        "there are ['arrivals', 'late', 'schema', 'size', 'source', 'timestamp', 'values']"
    )
    refuse(f"{STREAM}sizes = 3\n{QUERY}", "streams.s.sizes", message)


def test_an_unknown_key_of_a_query_is_refused(refuse: Refuse) -> None:
    known = ["ceiling", "cql", "from", "operators", "shed", "sink", "weight"]
    message = f"no such key (did you mean 'weight'?); there are {known}"
    refuse(f"{STREAM}{QUERY}wait = 3\n", "queries.q.wait", message)


def test_an_unknown_key_of_an_operator_is_refused(refuse: Refuse) -> None:
    message = f"no such key (did you mean 'cost'?); there are {OPERATOR_KEYS}"
    refuse(second('name = "o2", costs = 1'), "queries.q.operators[1].costs", message)


def test_an_unknown_key_of_arrivals_is_refused(refuse: Refuse) -> None:
    message = (
        "no such key for arrivals of kind 'poisson' (did you mean 'rate'?); "
        "there are ['clump', 'count', 'kind', 'rate', 'seed', 'start', 'until', 'utilisation']"
    )
    arrivals = 'arrivals = { kind = "poisson", rats = 3 }\n'
    refuse(STREAM + arrivals + QUERY, "streams.s.arrivals.rats", message)


def test_wrong_arrivals_are_refused_when_the_plan_is_read(refuse: Refuse) -> None:
    arrivals = 'arrivals = { kind = "list", at = [0, 2, 1] }\n'
    message = "1.0 given after 2.0; expected instants in ascending order"
    refuse(STREAM + arrivals + QUERY, "streams.s.arrivals.at[2]", message)


def test_costs_that_a_stream_carries_for_no_operator_are_refused(refuse: Refuse) -> None:
    arrivals = 'arrivals = { kind = "list", at = [0], cost = { o11 = [2] } }\n'
    message = "costs for 'o11': no such operator (did you mean 'o1'?); there are ['o1', 'o2']"
    refuse(STREAM + arrivals + QUERY, "streams.s.arrivals.cost.o11", message)


def test_a_plan_without_streams_is_refused(refuse: Refuse) -> None:
    refuse(QUERY, "streams", "there is no stream: a plan needs at least one [streams.NAME]")


def test_a_plan_without_queries_is_refused(refuse: Refuse) -> None:
    refuse(STREAM, "queries", "there is no query: a plan needs at least one [queries.NAME]")


def test_a_query_without_operators_is_refused(refuse: Refuse) -> None:
    for given, shown in (("", "None"), ("operators = []\n", "[]"), ('operators = "o1"\n', "'o1'")):
        message = f"{shown} is not a list of at least one operator"
        refuse(f'{STREAM}[queries.q]\nfrom = "s"\n{given}', "queries.q.operators", message)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("streams = 3\n" + QUERY, "streams"),
        ("[streams]\ns = 3\n" + QUERY, "streams.s"),
        (f"{STREAM}arrivals = 3\n{QUERY}", "streams.s.arrivals"),
        (f"queries = 3\n{STREAM}", "queries"),
        (f"{STREAM}[queries]\nq = 3\n", "queries.q"),
        (f'{STREAM}[queries.q]\nfrom = "s"\noperators = [3]\n', "queries.q.operators[0]"),
        (f"run = 3\n{STREAM}{QUERY}", "run"),
    ],
)
def test_what_should_be_a_table_is_one(refuse: Refuse, text: str, place: str) -> None:
    refuse(text, place, "3 is not a table")


@pytest.mark.parametrize(
    ("line", "place", "message"),
    [
        ('tuples = "whole"', "run.tuples", "'whole' is not a valid choice; there are ['fractional', 'individual']"),
        ("tuples = 3", "run.tuples", "3 is not a valid choice; there are ['fractional', 'individual']"),
        ('selectivity = "even"', "run.selectivity", "'even' is not a valid choice; there are ['random', 'spread']"),
        ("selectivity = 0.5", "run.selectivity", "0.5 is not a valid choice; there are ['random', 'spread']"),
        ('buffers = "own"', "run.buffers", "'own' is not a valid choice; there are ['private', 'shared']"),
        (
            'statistics = "exact"',
            "run.statistics",
            "'exact' is not a valid choice; there are ['average', 'declared', 'window']",
        ),
        ("in_service = 1", "run.in_service", "1 is not a boolean (true or false)"),
        ('in_service = "yes"', "run.in_service", "'yes' is not a boolean (true or false)"),
        ("seed = -1", "run.seed", "-1 is not a whole number from 0"),
        ("seed = 1.0", "run.seed", "1.0 is not a whole number from 0"),
        ("seed = true", "run.seed", "True is not a whole number from 0"),
        ('seed = "1"', "run.seed", "'1' is not a whole number from 0"),
        ("slice = 0", "run.slice", "0 is not a positive number"),
        ("slice = inf", "run.slice", "inf is not a positive number"),
        ('slice = "1 s"', "run.slice", "'1 s' is not a positive number"),
        ("until = nan", "run.until", "nan is not a number from 0"),
        ("until = -5.0", "run.until", "-5.0 is not a number from 0"),
        ("window = 0.0", "run.window", "0.0 is not a positive number"),
        ("history = true", "run.history", "True is not a number above 0 and below 1"),
        (
            "history = 1.0",
            "run.history",
            "1.0 is not a number above 0 and below 1",
        ),
        (
            "sede = 1",
            "run.sede",
            "no such key (did you mean 'seed'?); there are ['bounds', 'buffers', 'history', 'hop_cost', 'in_service', "
            "'max_wait', 'mode', 'on_error', 'order', 'scheduling_cost', 'seed', 'selectivity', 'slice', "
            "'statistics', 'tuples', 'turn_cost', 'until', 'window']",
        ),
    ],
)
def test_a_wrong_setting_is_refused(refuse: Refuse, line: str, place: str, message: str) -> None:
    refuse(f"{STREAM}{QUERY}[run]\n{line}\n", place, message)


def test_settings_are_read_and_have_defaults(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(f'{STREAM}{QUERY}[run]\ntuples = "fractional"\nseed = 7\nslice = 2\nin_service = false\n')
    settings = read_plan(file).settings
    assert (settings.tuples, settings.seed, settings.slice, settings.in_service) == ("fractional", 7, 2.0, False)
    assert (settings.selectivity, settings.buffers, settings.statistics) == ("random", "shared", "declared")
    assert settings.until is None


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ('"keep"', "function 'keep' is not of the form 'module:name'"),
        ('":keep"', "function ':keep' is not of the form 'module:name'"),
        ('"math:"', "function 'math:' is not of the form 'module:name'"),
        ('"no_such_module:f"', "function 'no_such_module:f': module 'no_such_module' cannot be imported: No module"),
        ('"math:sine"', "function 'math:sine': no 'sine' in 'math' (did you mean 'sin'?); there are ['acos', "),
        ('"math:pi"', "function 'math:pi' is a float, not a function"),
        ("3", "function '3' is not of the form 'module:name'"),
        ('".here:f"', "function '.here:f'"),
    ],
)
def test_a_function_that_cannot_be_had_is_refused(tmp_path: Path, function: str, message: str) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(second(f'name = "f", cost = 1, function = {function}'))
    with pytest.raises(PlanError) as caught:
        read_plan(file)
    assert str(caught.value).startswith(f"{file}: queries.q.operators[1].function: {message}")


def test_a_module_that_fails_while_it_is_imported_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "planfile_broken.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "plan.toml").write_text(second('name = "f", cost = 1, function = "planfile_broken:f"'))
    with pytest.raises(PlanError, match="module 'planfile_broken' cannot be imported: division by zero"):
        read_plan(tmp_path / "plan.toml")


def test_an_error_in_a_table_has_a_place_and_no_file() -> None:
    with pytest.raises(PlanError) as caught:
        plan_from({"streams": {"s": {}}, "queries": {"q": {"from": "s", "operators": [{"name": "a", "cost": -1}]}}})
    assert str(caught.value) == "queries.q.operators[0].cost: -1 is not a number from 0"
    assert caught.value.file == ""


def test_a_plan_is_named_after_its_file(tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text(STREAM + QUERY)
    assert read_plan(file).name == str(file)
    assert read_plan(str(file)).name == str(file)


def test_a_trace_file_is_looked_for_beside_the_plan(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("at\n0\n4\n")
    file = tmp_path / "plan.toml"
    file.write_text(f'{STREAM}arrivals = {{ kind = "file", path = "trace.csv" }}\n{QUERY}')
    assert simulate(file, "fifo").elapsed == 6.0


def test_plan_files_of_this_repository_are_read() -> None:
    folder = TESTS / "plans"
    for file in sorted(folder.glob("*.toml")):
        assert read_plan(file).stations
