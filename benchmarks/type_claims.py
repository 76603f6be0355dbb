"""For every operator of the standard, of ai.onnx.ml and of com.microsoft: does the CPU provider run all of it, in each type?

    python benchmarks/type_claims.py [OPERATOR ...]

The nodes of `operator_instances.py`, with the inputs that share the type of the first one in each other type that the schema
allows, those of com.microsoft in the types that they are written in; none is run. Printed are the types that leave something to
another provider, by the reason; half types count as run where they are widened on the way.
"""

from __future__ import annotations

import sys

from operator_draws import Instance
from operator_instances import INSTANCES, LOOPS_AROUND_MODELS
from operator_variants import typed

import sardonyx
from sardonyx.errors import SardonyxError
from sardonyx.session.providers import CPU


def reason_of(instance: Instance) -> str:
    """Why something is left to another provider; nothing where all is run, and where the model is not valid."""
    options = sardonyx.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = sardonyx.InferenceSession(instance.model().SerializeToString(), options, providers=[CPU])
    except SardonyxError:
        return ""
    return next((place.declined.get(CPU, "") for place in session.explain() if place.provider != CPU), "")


def main() -> None:
    """Print a line for each operator and reason, then how many pairs of operator and type are left."""
    wanted, left, total = set(sys.argv[1:]), 0, 0
    seen: set[tuple[str, str]] = set()
    for instance in INSTANCES:
        if instance.op_type in LOOPS_AROUND_MODELS or (wanted and instance.op_type not in wanted):
            continue
        operator = f"{instance.domain}.{instance.op_type}" if instance.domain else instance.op_type
        reasons: dict[str, list[str]] = {}
        for name, made in typed(instance):
            if (operator, name) not in seen:
                seen.add((operator, name))
                total += 1
                reason = reason_of(made)
                if reason:
                    reasons.setdefault(reason, []).append(name)
        for reason, names in reasons.items():
            left += len(names)
            print(f"{operator:24} {' '.join(names):60} {reason[:100]}", flush=True)
    print(f"{left} of {total} pairs of operator and type are left to others")


if __name__ == "__main__":
    main()
