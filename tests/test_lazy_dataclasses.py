"""Dataclasses whose methods are written later do what the standard's do."""

from __future__ import annotations

import abc
import copy
import dataclasses as standard
import pickle
from typing import Any, ClassVar

import pytest

from sardonyx import lazy_dataclasses as lazy


@lazy.dataclass(frozen=True, slots=True)
class Lazy:
    """Of fields with and without defaults."""

    x: int
    y: str = "why"
    z: list[int] = lazy.field(default_factory=list, hash=False)
    hidden: int = lazy.field(default=7, compare=False, repr=False)


@standard.dataclass(frozen=True, slots=True)
class Plain:
    """The same, by the standard."""

    x: int
    y: str = "why"
    z: list[int] = standard.field(default_factory=list, hash=False)
    hidden: int = standard.field(default=7, compare=False, repr=False)


@lazy.dataclass(frozen=True)
class LazyDict:
    """Without slots, with a field that no argument sets, and a hash of its own."""

    x: int
    y: str = "why"
    z: list[int] = lazy.field(default_factory=list, compare=False)
    made: str = lazy.field(init=False, compare=False)
    fixed: int = lazy.field(init=False, default=3)

    def __post_init__(self) -> None:
        object.__setattr__(self, "made", f"{self.x}{self.y}")

    def __hash__(self) -> int:
        return self.x


@standard.dataclass(frozen=True)
class PlainDict:
    """The same, by the standard."""

    x: int
    y: str = "why"
    z: list[int] = standard.field(default_factory=list, compare=False)
    made: str = standard.field(init=False, compare=False)
    fixed: int = standard.field(init=False, default=3)

    def __post_init__(self) -> None:
        object.__setattr__(self, "made", f"{self.x}{self.y}")

    def __hash__(self) -> int:
        return self.x


@lazy.dataclass(frozen=True, slots=True)
class Derived(Lazy):
    """With one more."""

    more: float = 0.5


@lazy.dataclass(slots=True, weakref_slot=True, eq=False)
class Open:
    """One that can be changed, and is only equal to itself."""

    x: int

    def __post_init__(self) -> None:
        self.x += 1


def _outcome(work: Any) -> object:
    try:
        return repr(work()).replace("Plain", "Lazy")
    except Exception as error:  # noqa: BLE001  the kind of error is what is compared
        return type(error).__name__


@pytest.mark.parametrize(
    "work",
    [
        lambda cls: cls(1),
        lambda cls: cls(1, z=[3]),
        lambda cls: cls(y="a", x=2),
        lambda cls: cls(),
        lambda cls: cls(1, 2, 3, 4, 5),
        lambda cls: cls(1, w=2),
        lambda cls: cls(1) == cls(1, hidden=8),
        lambda cls: cls(1) == cls(2),
        lambda cls: cls(1) == 1,
        lambda cls: hash(cls(1, z=[1])) == hash(cls(1)),
        lambda cls: hash(cls(1)),
        lambda cls: cls(1).z is cls(1).z,
        lambda cls: setattr(cls(1), "x", 2),
        lambda cls: delattr(cls(1), "x"),
        lambda cls: standard.replace(cls(1), x=5),
        lambda cls: [(item.name, item.type, item.compare) for item in standard.fields(cls)],
        lambda cls: standard.asdict(cls(1)),
        lambda cls: standard.is_dataclass(cls),
        lambda cls: copy.deepcopy(cls(1, z=[2])),
        lambda cls: cls.__match_args__,
        lambda cls: cls(1).__dict__,
        lambda cls: cls.__doc__ is not None,
        lambda cls: cls(cls(1)),
    ],
)
def test_they_do_what_the_standard_does(work: Any) -> None:
    """With the same results, and errors of the same kind."""
    assert _outcome(lambda: work(Lazy)) == _outcome(lambda: work(Plain))


@pytest.mark.parametrize(
    "work",
    [
        lambda cls: cls(1),
        lambda cls: cls(1, "b", [4]),
        lambda cls: cls(1, "b", [4], "made"),
        lambda cls: cls(1, made="b"),
        lambda cls: cls(1) == cls(1, z=[8]),
        lambda cls: cls(1) == cls(1, "b"),
        lambda cls: hash(cls(1, "b")),
        lambda cls: cls.y,
        lambda cls: cls.z,
        lambda cls: sorted(cls(1, z=[2]).__dict__.items()),
        lambda cls: setattr(cls(1), "x", 2),
        lambda cls: setattr(cls(1), "other", 2),
        lambda cls: standard.replace(cls(1), x=5),
        lambda cls: standard.replace(cls(1), made="b"),
        lambda cls: standard.asdict(cls(1)),
        lambda cls: copy.deepcopy(cls(1, z=[2])),
        lambda cls: cls.__match_args__,
    ],
)
def test_those_without_slots_do_too(work: Any) -> None:
    """With fields that no argument sets, and a hash of their own."""
    assert _outcome(lambda: work(LazyDict)) == _outcome(lambda: work(PlainDict))


def test_abstract_classes_stay_abstract() -> None:
    """A dataclass with an abstract method cannot be made, one that has it can."""

    @lazy.dataclass(frozen=True)
    class Base(abc.ABC):
        x: int

        @abc.abstractmethod
        def work(self) -> int:
            """Return a number."""

    @lazy.dataclass(frozen=True)
    class Whole(Base):
        y: int = 2

        def work(self) -> int:
            return self.x + self.y

    with pytest.raises(TypeError, match="abstract"):
        Base(1)
    assert Whole(1).work() == 3
    assert Whole(1) == Whole(1, 2)


def test_methods_are_replaced_when_they_are_called_often() -> None:
    """Calls after that are those of an ordinary method; the results are the same before and after."""

    @lazy.dataclass(frozen=True, slots=True)
    class Fresh:
        x: int
        y: list[int] = lazy.field(default_factory=list, hash=False)
        z: int = 5

    names = ("__init__", "__eq__", "__hash__")
    before = [getattr(Fresh, name) for name in names]
    for number in range(50):
        made = Fresh(number, y=[1])
        assert (made.x, made.y, made.z) == (number, [1], 5)
        assert Fresh(number).y == []
        assert made == Fresh(x=number, y=[1]) != Fresh(number)
        assert made != (number, [1], 5)
        assert hash(made) == hash((number, 5))
        if number == 0:
            assert before == [getattr(Fresh, name) for name in names]
    assert all(getattr(Fresh, name) is not old for name, old in zip(names, before, strict=True))


@pytest.mark.parametrize(
    ("arguments", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"x": 2}), ((1,), {"q": 2}), ((), {"y": 2}), ((1,), {"z": 2})]
)
def test_wrong_arguments_are_refused_by_the_first_call(arguments: tuple[int, ...], named: dict[str, int]) -> None:
    """With the message of an ordinary method; nothing is set."""

    @lazy.dataclass(frozen=True)
    class Fresh:
        x: int
        y: int = 2
        z: int = lazy.field(default=5, init=False)

    @standard.dataclass(frozen=True)
    class Ordinary:
        x: int
        y: int = 2
        z: int = standard.field(default=5, init=False)

    for kind in (Fresh, Ordinary):
        with pytest.raises(TypeError, match=r"__init__\(\) (missing|takes|got)"):
            kind(*arguments, **named)


def test_a_class_that_was_derived_has_all_fields() -> None:
    """Those of its base come first, and each class has methods of its own."""
    assert repr(Derived(1, "a", [2], more=3.5)) == "Derived(x=1, y='a', z=[2], more=3.5)"
    assert Derived(1) != Lazy(1)
    assert repr(Lazy(1)) == "Lazy(x=1, y='why', z=[])"


def test_a_plain_subclass_uses_the_methods_of_its_base() -> None:
    """Also where it is the first to call them."""

    @lazy.dataclass(frozen=True, slots=True)
    class Base:
        x: int

    class Sub(Base):
        """Adds nothing."""

    assert Sub(3).x == 3
    assert Sub(3) == Sub(3)
    assert Base(4).x == 4


def test_open_classes_can_be_changed() -> None:
    """Their own steps after being made are taken, and they are hashed by identity."""
    item = Open(1)
    assert item.x == 2
    item.x = 5
    assert {item: 1}[item] == 1
    assert Open(1) != Open(1)


def test_objects_are_pickled() -> None:
    """As those of the standard are."""
    assert pickle.loads(pickle.dumps(Lazy(1, z=[4]))) == Lazy(1, z=[4])


@pytest.mark.parametrize("options", [{}, {"order": True}, {"slots": True, "order": True}, {"slots": True, "kw_only": True}])
def test_other_options_are_left_to_the_standard(options: dict[str, bool]) -> None:
    """They are as ever."""

    class Given:
        x: int
        shared: ClassVar[int] = 3

    Given.__annotations__ = {"x": "int", "shared": "ClassVar[int]"}
    made = lazy.dataclass(Given, **options)
    assert [item.name for item in standard.fields(made)] == ["x"]
    assert made(x=3).x == 3


def test_a_mutable_default_is_refused() -> None:
    """It would be shared."""

    class Given:
        x: list[int] = []  # noqa: RUF012  what is to be refused

    with pytest.raises(ValueError, match="mutable default"):
        lazy.dataclass(Given, slots=True)
