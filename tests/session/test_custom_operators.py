"""The custom operators of a session."""

from __future__ import annotations

import ctypes
import sys

import numpy as np
import pytest
from support.custom_ops import custom_model, library_path
from support.ort_api import ask, call

import sardonyx
from sardonyx import errors
from sardonyx.custom_ops.abi.entries.core import Registration
from sardonyx.custom_ops.abi.handles import keep
from sardonyx.custom_ops.library import api_base
from sardonyx.dtypes import DataType
from sardonyx.session.custom_operators import with_custom_operators
from sardonyx.session.settings.settings import read_settings
from sardonyx.session.stages.provider_list import ProviderList

MODEL = custom_model("Scale", [np.ones(2, np.float32)], [DataType.FLOAT], factor=2.0, offset=1)


def test_without_libraries_nothing_changes() -> None:
    """The providers are the same object."""
    providers = ProviderList.of([])
    assert with_custom_operators(read_settings(sardonyx.SessionOptions()), providers) == (None, providers)


def test_a_provider_for_them_comes_first() -> None:
    """And a lookup that knows them."""
    options = sardonyx.SessionOptions()
    options.register_custom_ops_library(library_path())
    lookup, providers = with_custom_operators(read_settings(options), ProviderList.of([]))
    assert lookup is not None
    assert lookup.find_operator("test.ops", "Scale", 1) is not None
    assert providers.names == ["CustomOperators"]


def test_a_function_registers_by_its_address() -> None:
    """RegisterCustomOps of a library that the caller has loaded."""
    function = ctypes.cast(ctypes.CDLL(library_path()).RegisterCustomOps, ctypes.c_void_p).value or 0
    options = sardonyx.SessionOptions()
    options.register_custom_ops_using_function(function, "mine")
    assert sardonyx.InferenceSession(MODEL, options).run(None, {"x0": np.ones(2, np.float32)})[0].tolist() == [3, 3]


def _operators() -> list[int]:
    """The addresses of the library's operators, as it registers them."""
    registration = Registration({}, [])
    register = ctypes.CDLL(library_path()).RegisterCustomOps
    register.restype, register.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p)
    assert register(keep(registration), api_base()) is None
    return registration.domains[0].operators


def test_a_domain_is_added_by_its_handle() -> None:
    """Made by our OrtApi, with operators at any address; an unknown handle is refused."""
    domain = ask("CreateCustomOpDomain", ctypes.c_char_p(b"test.ops"))
    (address, *_) = _operators()
    assert call("CustomOpDomain_Add", domain, address) is None
    options = sardonyx.SessionOptions()
    options.add_custom_op_domain(domain)
    assert sardonyx.InferenceSession(MODEL, options).run(None, {"x0": np.ones(2, np.float32)})[0].tolist() == [3, 3]
    with pytest.raises(errors.InvalidArgument, match="expected Domain"):
        options.add_custom_op_domain(4)


def test_the_extensions_are_enabled_by_name() -> None:
    """Where the package is installed."""
    pytest.importorskip("onnxruntime_extensions")
    options = sardonyx.SessionOptions()
    options.enable_ort_custom_ops()
    assert "NegPos" in {item.name for item in options.custom_ops[0].definitions}


def test_extensions_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how to get them."""
    monkeypatch.setitem(sys.modules, "onnxruntime_extensions", None)
    with pytest.raises(errors.Fail, match="pip install onnxruntime-extensions"):
        sardonyx.SessionOptions().enable_ort_custom_ops()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not list what may be executed")
@pytest.mark.parametrize("address", [0, 1, -5, 2**70])
def test_an_address_without_code_is_refused(address: int) -> None:
    """The process is not at risk."""
    with pytest.raises(errors.InvalidArgument, match="where no function lies"):
        sardonyx.SessionOptions().register_custom_ops_using_function(address)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not list what may be executed")
def test_data_is_no_function() -> None:
    """An address that may be read and not executed."""
    data = ctypes.create_string_buffer(16)
    with pytest.raises(errors.InvalidArgument, match="where no function lies"):
        sardonyx.SessionOptions().register_custom_ops_using_function(ctypes.addressof(data))


def test_addresses_are_integers() -> None:
    """Each error names the argument."""
    options = sardonyx.SessionOptions()
    with pytest.raises(TypeError, match="address is an integer, got 'x'"):
        options.register_custom_ops_using_function("x")  # type: ignore[arg-type]  # that is the case
    with pytest.raises(TypeError, match="domain is an integer, got None"):
        options.add_custom_op_domain(None)  # type: ignore[arg-type]  # that is the case
