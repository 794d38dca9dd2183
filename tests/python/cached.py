"""One of several processes that share JAX's compilation cache. Arguments: FOLDER, then what to do:

kernel NAME   calls rms_norm under an override
fail          calls it under the policy fail, which is an error
export FILE   writes it as a program of jax.export, lowered under the policy fail
run FILE      runs that program

Prints a line of JSON for each: the context in the lowered program, what came of it, and how much the cache had of it.
"""

import json
import os
import pathlib
import sys

os.environ.update(JAX_PLATFORMS="cpu", JAX_COMPILATION_CACHE_DIR=sys.argv[1], JAX_ENABLE_COMPILATION_CACHE="true",
                  JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0", JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES="-1")

import jax  # noqa: E402
import jax.export  # noqa: E402
import jax.monitoring  # noqa: E402
import numpy  # noqa: E402

import hone.jax  # noqa: E402

X, W = numpy.ones((8, 64), numpy.float32), numpy.ones(64, numpy.float32)
events = []
jax.monitoring.register_event_listener(lambda event, **more: events.append(event))


@jax.jit
def norm(x, w):
    return hone.jax.call("rms_norm", x, w)


def outcome(function):
    try:
        return round(float(numpy.asarray(function(X, W))[0, 0]), 3)
    except Exception as error:  # XLA's, in hone's words
        return str(error)


def report(function, context):
    with context:
        text = norm.lower(X, W).as_text()
        events.clear()
        row = {"context": text.split("hone_context = ")[1].split(" ")[0], "outcome": outcome(function)}
        row["hits"] = sum(event.endswith("/cache_hits") for event in events)
        print(json.dumps(row))


def main():
    words = iter(sys.argv[2:])
    for word in words:
        if word == "kernel":
            report(norm, hone.override("rms_norm", next(words)))
        elif word == "fail":
            report(norm, hone.policy("fail"))
        elif word == "export":
            with hone.policy("fail"):
                program = jax.export.export(norm)(X, W)
            pathlib.Path(next(words)).write_bytes(program.serialize())
        else:
            program = jax.export.deserialize(bytearray(pathlib.Path(next(words)).read_bytes()))
            report(program.call, hone.context())


main()
