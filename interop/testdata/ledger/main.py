"""Runs the Python client of the ledger over HTTP: URL JOURNAL STEP... Prints a word a step."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../clients/python"))
from quotabudget import Denied, Ledger, QuotaError  # noqa: E402

ledger = Ledger(sys.argv[1], token=os.environ.get("TOKEN", ""), journal=sys.argv[2])
hold = None
for step in sys.argv[3:]:
    verb, _, n = step.partition("=")
    try:
        if verb == "settle" and hold is None:
            print("none")
            continue
        if verb == "charge":
            ledger.charge(units=int(n))
        elif verb == "hold":
            hold = None
            hold = ledger.hold(units=int(n), ttl="1h")
        elif verb == "settle":
            with hold:
                hold.used = {"default": int(n)}
        elif verb == "release":
            ledger.release(hold.id)
        elif verb == "extend":
            ledger.extend(hold.id, "2h")
        elif verb == "replay":
            ledger.replay()
        print("ok")
    except Denied as e:
        print("never" if e.never else "denied" if e.retry_at and e.retry_after >= 0 else "failed")
    except QuotaError:
        print("failed")
