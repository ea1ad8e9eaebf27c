"""Has Celery work off one task whose call is charged to a quota ledger: URL REDIS."""

import os
import signal
import sys

from celery import Celery
from celery.signals import task_retry
from celery_quota import charged
from quotabudget import Ledger

app = Celery("adapters", broker=sys.argv[2])
app.conf.worker_redirect_stdouts = False


@app.task(bind=True, max_retries=0)
@charged(Ledger(sys.argv[1]), units=1)
def fetch(self):
    print("done at attempt", self.request.retries + 1, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)


@task_retry.connect
def retried(reason, **_):
    print("denied until", reason.when.isoformat(), flush=True)


fetch.delay()
app.worker_main(["--quiet", "worker", "--pool=solo", "--without-gossip", "--without-mingle",
                 "--loglevel=ERROR"])
