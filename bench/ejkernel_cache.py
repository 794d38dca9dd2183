"""Times get and put of ejkernel's PersistentCache: ejkernel_cache.py PERSISTENT.PY FOLDER SIZE...

Prints a line for each: "put 10000 MEDIAN LOW HIGH", nanoseconds and the 95 % interval of the median. The file of the cache is
loaded by itself: the package around it wants JAX.
"""

import importlib.util
import json
import math
import pathlib
import random
import sys
import time

DEVICE, OPERATION = "cpu|cpu", "rms_norm@v1"
CONFIG = {"platform": "native", "backend": "cpu", "fwd_params": {"unroll": 4, "rows_per_task": 16, "threads": 2}}
GETS, LEAST, SECONDS = 20000, 3, 2.0


def load(path):
    spec = importlib.util.spec_from_file_location("persistent", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PersistentCache


def key_of(index):
    return f"{(index + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF:016x}"


def report(name, size, times):
    times.sort()
    half = 0.98 * math.sqrt(len(times))
    low = times[max(0, math.floor(len(times) / 2 - half))]
    high = times[min(len(times) - 1, math.ceil(len(times) / 2 + half))]
    print(name, size, times[len(times) // 2], low, high, flush=True)


def time_gets(cache, keys):
    times = []
    for _ in range(41):
        start = time.perf_counter_ns()
        for key in keys:
            if cache.get(DEVICE, OPERATION, key) is None:
                raise SystemExit("an entry is missing")
        times.append((time.perf_counter_ns() - start) / len(keys))
    return times


def time_puts(cache, keys):
    times, begun = [], time.monotonic()
    for key in keys:
        start = time.perf_counter_ns()
        cache.put(DEVICE, OPERATION, key, CONFIG)
        times.append(time.perf_counter_ns() - start)
        if len(times) >= LEAST and time.monotonic() - begun > SECONDS:
            break
    return times


def measure(persistent_cache, path, size):
    entries = {f"{DEVICE}|{OPERATION}|{key_of(index)}": CONFIG for index in range(size)}
    path.write_text(json.dumps(entries))
    del entries
    cache = persistent_cache("rms_norm", path=str(path))
    choose = random.Random(1)
    report("get", size, time_gets(cache, [key_of(choose.randrange(size)) for _ in range(GETS // 41)]))
    report("put", size, time_puts(cache, [key_of(choose.randrange(size)) for _ in range(GETS)]))
    path.unlink()


def main(program, cache_file, folder, *sizes):
    persistent_cache = load(cache_file)
    for size in sizes:
        measure(persistent_cache, pathlib.Path(folder) / "ejkernel.json", int(size))


if __name__ == "__main__":
    main(*sys.argv)
