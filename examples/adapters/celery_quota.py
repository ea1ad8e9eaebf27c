"""Has Celery charge a quota ledger before each call of a task.

    ledger = Ledger("http://127.0.0.1:8080")

    @app.task(bind=True)
    @charged(ledger, method="youtube.videos.list")
    def fetch(self, video): ...
"""

import functools
from datetime import datetime

from quotabudget import Denied, Ledger


def charged(ledger: Ledger, **cost):
    """Charges the cost before the task runs. A denied task is retried as soon as it fits, which uses up
    none of its retries."""

    def decorate(task):
        @functools.wraps(task)
        def run(self, *args, **kwargs):
            try:
                # without a task key: an interrupted run may have sent its call
                ledger.charge(**cost)
            except Denied as denied:
                if denied.never:
                    raise
                self.request.retries -= 1  # retry adds one
                eta = datetime.fromisoformat(denied.retry_at.replace("Z", "+00:00"))
                raise self.retry(eta=eta, max_retries=None) from None
            return task(self, *args, **kwargs)

        return run

    return decorate
