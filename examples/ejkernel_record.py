"""Writes the calls that ejkernel recorded in this process as a document for `hone record import`.

    EJKERNEL_OPS_RECORD=1 python program.py     # which ends with: ejkernel_record.dump("calls.json")
    hone record import calls.json
"""
import json

from ejkernel.ops import device_fingerprint, get_invocations
from ejkernel.ops.utils.fingerprint import abstractify, stable_json


def dump(path):
    device, rows = device_fingerprint(), []
    for operation, calls in get_invocations(device).items():
        for key, (_, arguments, keywords) in calls.items():
            spec = {"args_spec": abstractify(arguments), "kwargs_spec": abstractify(dict(keywords)),
                    "batch_axes": None, "method": None}
            rows.append({"op": operation, "key": key, "spec": stable_json(spec)})
    with open(path, "w") as file:
        json.dump({"device": device, "invocations": rows}, file, indent=1)
