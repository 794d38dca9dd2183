"""The peer of bench_space: enumerates spaces in T1 form with python-constraint2, the solver of Kernel Tuner.

    python_constraint.py FOLDER SPACE.json...     FOLDER: where the package is

Reads and solves all of them once and prints the number of configs, the nanoseconds, and the bytes that it came to use.
"""

import json
import resource
import sys
import time

sys.path.insert(0, sys.argv[1])
from constraint import Problem  # noqa: E402


def solve(path):
    with open(path, encoding="utf-8") as file:
        space = json.load(file)["ConfigurationSpace"]
    problem = Problem()
    for parameter in space["TuningParameters"]:
        values = parameter["Values"]
        if isinstance(values, str):
            values = [int(value) for value in values.strip("[] ").split(",")]
        problem.addVariable(parameter["Name"], values)
    for condition in space["Conditions"]:
        problem.addConstraint(condition["Expression"])
    return len(problem.getSolutionsAsListDict(order=[p["Name"] for p in space["TuningParameters"]])[0])


before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter_ns()
count = sum(solve(path) for path in sys.argv[2:])
elapsed = time.perf_counter_ns() - start
print(count, elapsed, 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
