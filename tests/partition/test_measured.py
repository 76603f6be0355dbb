"""Measured placement on made-up profiles."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from support.models import graph
from support.providers import DeviceProvider, FusingProvider

from sardonyx.ir import Graph
from sardonyx.partition.claims import claims_of
from sardonyx.partition.measured import MEASURED, calibrated, is_worth_it, predict
from sardonyx.partition.profile import Copies, Profile, Sample, key_of, key_of_graph
from sardonyx.provider import Provider

CHAIN = """graph(x: float[64]) -> (y: float[64]) {
    a = Relu(x) @n0
    b = Neg(a) @n1
    c = Relu(b) @n2
    y = Exp(c) @n3
}"""
BRANCHES = """graph(x: float[64]) -> (y: float[64], z: float[64]) {
    a = Relu(x) @n0
    y = Exp(a) @n1
    b = Neg(x) @n2
    z = Exp(b) @n3
}"""
HOST_A = FusingProvider({"Relu", "Neg", "Exp"}, "A", fuse=False)
HOST_B = FusingProvider({"Relu", "Neg", "Exp"}, "B", fuse=False)
DEVICE = DeviceProvider({"Relu", "Neg"}, "Device")


def _profile(
    held: Graph,
    times: Mapping[str, Mapping[str, float]],
    step_us: float = 1.0,
    copy_us: float = 0.0,
    whole: Mapping[str, float] | None = None,
) -> Profile:
    """A profile of `times`: provider -> operator -> microseconds."""
    samples = {
        (name, key_of(node)): Sample(name, node.op_type, key_of(node), 512.0, time_us, time_us, (256.0,))
        for name, operators in times.items()
        for node in held
        for operator, time_us in operators.items()
        if node.op_type == operator
    }
    copies = {DEVICE.memory.name: Copies(((256.0, copy_us),), ((256.0, copy_us),))}
    models = {} if whole is None else {key_of_graph(held): whole}
    return Profile(tuple(samples.values()), dict.fromkeys(times, step_us), copies, {}, models)


def _who(text: str, providers: list[Provider], profile: Profile, **pinned: str) -> str:
    held = graph(text)
    pins = {node: pinned[node.name] for node in held if node.name in pinned}
    placed = predict(held, providers, claims_of(held, providers), profile, pins).placed
    return " ".join(placed[node] for node in held)


def test_each_node_goes_where_it_is_fast() -> None:
    """Where changing places costs less than it gains."""
    times = {"A": {"Relu": 10.0, "Neg": 100.0, "Exp": 10.0}, "B": {"Relu": 100.0, "Neg": 10.0, "Exp": 100.0}}
    assert _who(CHAIN, [HOST_A, HOST_B], _profile(graph(CHAIN), times)) == "A B A A"
    assert _who(CHAIN, [HOST_A, HOST_B], _profile(graph(CHAIN), times, step_us=80.0)) == "A A A A"


def test_a_small_gain_is_not_worth_it() -> None:
    """The best single provider gets all; so it does where the mixture was measured to be slower."""
    times = {"A": {"Relu": 100.0, "Neg": 10.0, "Exp": 100.0}, "B": {"Relu": 200.0, "Neg": 4.0, "Exp": 200.0}}
    assert _who(CHAIN, [HOST_B, HOST_A], _profile(graph(CHAIN), times)) == "A A A A"
    times["A"]["Neg"] = 300.0
    assert _who(CHAIN, [HOST_B, HOST_A], _profile(graph(CHAIN), times)) == "A B A A"
    whole = {"A": 600.0, "B": 604.0, MEASURED: 601.0}
    assert _who(CHAIN, [HOST_B, HOST_A], _profile(graph(CHAIN), times, whole=whole)) == "A A A A"


def test_the_best_single_provider_is_the_measured_one() -> None:
    """Whole runs count more than sums of predictions."""
    times = {"A": {"Relu": 100.0, "Neg": 100.0, "Exp": 100.0}, "B": {"Relu": 101.0, "Neg": 101.0, "Exp": 101.0}}
    whole = {"A": 500.0, "B": 300.0}
    assert _who(CHAIN, [HOST_A, HOST_B], _profile(graph(CHAIN), times, whole=whole)) == "B B B B"


def test_copies_to_a_device_are_counted() -> None:
    """A fast device that is far away is not worth the way."""
    times = {"Device": {"Relu": 1.0, "Neg": 1.0}, "A": {"Relu": 50.0, "Neg": 50.0, "Exp": 50.0}}
    near, far = (_profile(graph(CHAIN), times, copy_us=copy_us) for copy_us in (10.0, 100.0))
    assert _who(CHAIN, [DEVICE, HOST_A], near) == "Device Device Device A"
    assert _who(CHAIN, [DEVICE, HOST_A], far) == "A A A A"


def test_what_is_placed_by_hand_stays() -> None:
    """And the rest is chosen around it."""
    times = {"A": {"Relu": 10.0, "Neg": 10.0, "Exp": 10.0}, "B": {"Relu": 20.0, "Neg": 20.0, "Exp": 20.0}}
    profile = _profile(graph(CHAIN), times, step_us=5.0)
    assert _who(CHAIN, [HOST_A, HOST_B], profile, n1="B") == "A B A A"


def test_branches_that_run_at_once_are_spread_over_memories() -> None:
    """One on the device, one on the host; providers of one memory take turns, so that nothing is gained there."""
    device = DeviceProvider({"Relu", "Neg", "Exp"}, "Device")
    times = {name: {"Relu": 50.0, "Neg": 50.0, "Exp": 50.0} for name in ("Device", "A", "B")}
    held = graph(BRANCHES)
    profile = _profile(held, times, copy_us=2.0)
    placed = predict(held, [device, HOST_A], claims_of(held, [device, HOST_A]), profile, parallel=True).placed
    names = [placed[node] for node in held]
    assert names[0] == names[1] != names[2] == names[3]
    assert predict(held, [HOST_A, HOST_B], claims_of(held, [HOST_A, HOST_B]), profile, parallel=True).is_single


def test_nodes_that_nobody_was_measured_on_go_by_the_order() -> None:
    """As without a profile."""
    assert _who(CHAIN, [HOST_B, HOST_A], Profile()) == "B B B B"


def test_whole_runs_set_the_pieces_right() -> None:
    """By one factor for each provider, where most of the run was its own; within bounds."""
    times = {"A": {"Relu": 10.0, "Neg": 10.0, "Exp": 10.0}, "Device": {"Relu": 10.0, "Neg": 10.0}}
    held = graph(CHAIN)
    found = calibrated(held, [DEVICE, HOST_A], claims_of(held, [DEVICE, HOST_A]), _profile(held, times), {"A": 80.0, "Device": 1e9})
    assert {sample.inside_us for sample in found.samples if sample.provider == "A"} == {20.0}
    assert {sample.inside_us for sample in found.samples if sample.provider == "Device"} == {40.0}


def test_borders_cost_what_fusion_saved() -> None:
    """A node that is far cheaper inside a partition stays in one; a factor makes borders dearer."""
    times = {"A": {"Relu": 10.0, "Neg": 10.0, "Exp": 10.0}, "B": {"Relu": 20.0, "Neg": 5.0, "Exp": 20.0}}
    profile = _profile(graph(CHAIN), times, step_us=0.0)
    assert _who(CHAIN, [HOST_A, HOST_B], profile) == "A B A A"
    alone = [dataclasses.replace(sample, alone_us=sample.inside_us + 4.0) for sample in profile.samples]
    assert _who(CHAIN, [HOST_A, HOST_B], dataclasses.replace(profile, samples=tuple(alone))) == "A A A A"
    cheap = [dataclasses.replace(sample, alone_us=sample.inside_us + 0.5) for sample in profile.samples]
    assert _who(CHAIN, [HOST_A, HOST_B], dataclasses.replace(profile, samples=tuple(cheap))) == "A B A A"
    assert _who(CHAIN, [HOST_A, HOST_B], dataclasses.replace(profile, samples=tuple(cheap), border_factor=4.0)) == "A A A A"


def test_a_mixture_must_have_been_faster_than_every_provider() -> None:
    """By more than chance."""
    assert is_worth_it({"A": 100.0, "B": 200.0, MEASURED: 90.0})
    assert not is_worth_it({"A": 100.0, "B": 200.0, MEASURED: 99.0})
    assert is_worth_it({MEASURED: 1.0})
