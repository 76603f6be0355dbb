"""The border to llvmlite."""

from sardonyx.codegen.llvm import binding, version


def test_the_version_names_llvmlite_and_llvm() -> None:
    """Both versions are part of the name under which objects are kept."""
    llvmlite, llvm = version().split("/")
    assert llvmlite
    assert llvm == ".".join(map(str, binding().llvm_version_info))
