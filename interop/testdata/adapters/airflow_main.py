"""Plays Airflow's scheduler for one sensor that charges a quota ledger: URL. Airflow itself is in no
package that the tests can install."""

import sys
import time
import types
from datetime import datetime, timezone


class AirflowFailException(Exception):
    pass


class AirflowRescheduleException(Exception):
    def __init__(self, reschedule_date):
        super().__init__()
        self.reschedule_date = reschedule_date


class BaseSensorOperator:
    def __init__(self, *, task_id, mode="poke"):
        self.task_id, self.mode = task_id, mode


for name, members in {
    "airflow": [], "airflow.sensors": [], "airflow.sensors.base": [BaseSensorOperator],
    "airflow.exceptions": [AirflowFailException, AirflowRescheduleException],
}.items():
    sys.modules[name] = types.ModuleType(name)
    for member in members:
        setattr(sys.modules[name], member.__name__, member)

from airflow_quota import QuotaSensor  # noqa: E402

try:
    QuotaSensor(task_id="never", url=sys.argv[1], cost={"units": 2}).poke({})
except AirflowFailException:
    pass
fits = QuotaSensor(task_id="fits", url=sys.argv[1], cost={"units": 1})
assert fits.mode == "reschedule"
while True:
    try:
        assert fits.poke({})
        break
    except AirflowRescheduleException as later:
        print("denied until", later.reschedule_date.isoformat())
        wait = later.reschedule_date - datetime.now(timezone.utc)
        time.sleep(max(0, wait.total_seconds()))
print("done at attempt 1")
