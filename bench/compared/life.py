"""The life of one connection in virtual time, from `urnic sim`: FAST, recovery, SLOW, FAST again. The same on every machine."""
import json
import os

from . import pairs

SCENARIO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "life.toml")
SHOWN = ("phase", "drop", "downgrade", "upgrade")


def lived(urnic):
    """The data for the picture."""
    doc = json.loads(pairs.output([urnic, "sim", SCENARIO, "--json"]))
    variant = doc["variants"][0]
    run, series = variant["runs"][0], variant["series"]
    if not run["complete"] or run["wrong_bytes"]:
        raise pairs.Failed(f"life: {run['end']}, {run['wrong_bytes']} bytes wrong")
    return {"us": [t // 1000 for t in series["t_ns"]], "fast": [int(f) for f in series["fast"]], "bytes": series["placed"],
            "reassembly": series["reassembly"], "events": [[e[0] // 1000, e[1], e[2]] for e in variant["events"] if e[1] in SHOWN],
            "bytes_delivered": run["bytes"], "wrong": run["wrong_bytes"], "repairs": len(run["repairs_ns"]), "goodput_mbits": round(run["goodput_bps"] * 1e-6, 1)}
