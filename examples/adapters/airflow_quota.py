"""Has Airflow charge a quota ledger before a task.

    fits = QuotaSensor(task_id="fits", url="http://127.0.0.1:8080",
                       cost={"method": "youtube.videos.list", "count": 20})
    fits >> fetch
"""

from datetime import datetime

from airflow.exceptions import AirflowFailException, AirflowRescheduleException
from airflow.sensors.base import BaseSensorOperator

from quotabudget import Denied, Ledger


class QuotaSensor(BaseSensorOperator):
    """Charges the cost of the next task. Until it fits, the sensor waits without a worker. It is a
    sensor because Airflow supports reschedule times only for sensors."""

    def __init__(self, *, url: str, cost: dict, token: str = "", **kwargs):
        super().__init__(mode="reschedule", **kwargs)
        self.url, self.cost, self.token = url, cost, token

    def poke(self, context) -> bool:
        """Charges, or waits until the cost fits."""
        try:
            Ledger(self.url, self.token).charge(**self.cost)
        except Denied as denied:
            if denied.never:
                raise AirflowFailException(str(denied)) from None
            at = datetime.fromisoformat(denied.retry_at.replace("Z", "+00:00"))
            raise AirflowRescheduleException(at) from None
        return True
