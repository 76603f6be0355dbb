"""The contract of passes."""

from support.optimizing import model_of

from sardonyx.optimize.contract import Context, Level, Pass


def test_levels_have_onnxruntimes_numbers():
    """Level counts as onnxruntime's GraphOptimizationLevel does."""
    assert [int(level) for level in Level] == [0, 1, 2, 3, 99]


def test_any_class_with_name_and_run_is_a_pass():
    """A pass of another package needs to inherit nothing."""

    class Nothing:
        name = "do_nothing"

        def run(self, model, context):
            return False

    what: Pass = Nothing()
    assert not what.run(model_of("graph(x) -> (x) {}"), Context())
