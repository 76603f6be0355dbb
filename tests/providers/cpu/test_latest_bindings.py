"""The bindings of a program that were used last."""

from sardonyx.providers.cpu.latest_bindings import LatestBindings


def test_a_binding_is_made_once() -> None:
    """Whatever is asked for in between."""
    made: list[int] = []
    bindings: LatestBindings[int, str] = LatestBindings()

    def make(key: int) -> str:
        made.append(key)
        return str(key)

    assert [bindings.of(key, make) for key in (1, 2, 1, 1, 2)] == ["1", "2", "1", "1", "2"]
    assert made == [1, 2]


def test_the_one_used_longest_ago_gives_way() -> None:
    """And is made again; the first one, used in between, is still there."""
    made: list[int] = []
    bindings: LatestBindings[int, int] = LatestBindings()

    def make(key: int) -> int:
        made.append(key)
        return key

    for key in range(64):
        bindings.of(key, make)
    for key in (0, 64, 0, 1):
        bindings.of(key, make)
    assert made == [*range(65), 1]
