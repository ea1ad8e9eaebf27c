"""Charges a quota ledger over HTTP: the API of quotactl serve. Needs only the standard library.

    ledger = Ledger("http://127.0.0.1:8080", journal="night.journal")
    ledger.replay()
    ledger.charge(method="youtube.videos.list")
    with ledger.hold(method="youtube.videos.list", count=4) as hold:
        hold.used = {"default": fetch_pages()}
"""

from __future__ import annotations

import json
import os
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from http.client import HTTPException
from typing import Any, Optional

TRIES = 3  # attempts at a request whose response is lost
AGAIN = (0, 502, 503, 504)  # the ledger, or the server behind a gateway, is unavailable
RESPONSE_KEYS = {"units", "expires_at", "released"}  # a response of the ledger has one of them


class QuotaError(Exception):
    """A refusal of the server. status is 0 if the server could not be reached."""

    def __init__(self, status: int, detail: str):
        super().__init__(f"quota: {status} {detail}" if status else f"quota: {detail}")
        self.status, self.detail = status, detail


class Denied(QuotaError):
    """A charge that does not fit now, or never. decision has the fields of quotactl spend."""

    def __init__(self, status: int, decision: dict[str, Any]):
        super().__init__(status, decision.get("detail", ""))
        self.decision = decision
        self.never: bool = bool(decision.get("never"))
        self.retry_at: Optional[str] = decision.get("retry_at")
        self.retry_after: Optional[int] = decision.get("retry_after_seconds")  # seconds


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, which would lose the body and take the token to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)


class Ledger:
    """The ledger of one server. It may be used by several threads."""

    def __init__(self, url: str, token: str = "", journal: str = "", timeout: float = 10.0):
        """journal is a file that keeps the usage of calls until it is settled, "" for none; each
        process needs its own. timeout is in seconds."""
        self.url, self.token, self.timeout = url.rstrip("/"), token, timeout
        self._journal = _Journal(journal) if journal else None

    def charge(self, *, key: str = "", dry_run: bool = False, **cost: Any) -> dict[str, Any]:
        """Takes the cost before a call: method and count, bucket and units, or costs (units by
        bucket); labels, manual, credential. key makes it happen once. Raises Denied."""
        return self._send("POST", "/v1/charges", {**cost, "dry_run": dry_run}, key)

    def hold(self, *, ttl: str = "15m", key: str = "", note: str = "", **cost: Any) -> Hold:
        """Sets the cost aside for a call whose price is known only after it. A hold that is not
        settled within ttl becomes a charge. Raises Denied."""
        body = {**cost, "ttl": ttl, "lapse": "charge", "note": note}
        return Hold(self, self._send("POST", "/v1/holds", body, key))

    def extend(self, hold: str, ttl: str) -> dict[str, Any]:
        """Extends a hold to ttl from now, unless it already lasts longer."""
        return self._send("PATCH", _path(hold), {"ttl": ttl})

    def settle(self, hold: str, used: dict[str, int]) -> dict[str, Any]:
        """Books the usage of a call, by bucket. The journal keeps it until it is booked. If the
        journal cannot be written, this fails only if the server does not book it either."""
        if not self._journal:
            return self._settle(hold, used, False)
        try:
            self._journal.keep(hold, used)
        except OSError as journal_error:
            try:
                return self._settle(hold, used, False)
            except QuotaError as e:
                raise QuotaError(e.status, f"{e.detail}; journal: {journal_error}") from e
        return self._settle(hold, used, True)

    def release(self, hold: str) -> dict[str, int]:
        """Returns the rest of a hold, for a call that was never sent."""
        return self._send("DELETE", _path(hold))["released"]

    def replay(self) -> int:
        """Settles the journal entries of an earlier process, and returns their number. Call it at
        the start. It tries to settle all of them, and then raises the last error, if any."""
        waiting = self._journal.load() if self._journal else []
        failed = None
        for hold, used in waiting:
            try:
                self._settle(hold, used, True)
            except QuotaError as e:
                failed = e
        if failed:
            raise failed
        return len(waiting)

    def _settle(self, hold: str, used: dict[str, int], kept: bool) -> dict[str, Any]:
        try:
            settled = self._send("POST", _path(hold) + "/settlements",
                                 {"costs": used, "charge_lost": True})
        except QuotaError as e:
            # refused for good; after any other refusal, such as of a token, a retry can succeed
            if kept and e.status in (404, 409, 422):
                self._journal.drop(hold)
            raise
        if kept:
            self._journal.drop(hold)
        return settled

    def _send(self, method: str, path: str, body: Any = None, key: str = "") -> Any:
        key = key or uuid.uuid4().hex
        for attempt in range(1, TRIES + 1):
            try:
                return self._once(method, path, body, key)
            except QuotaError as e:
                if e.status not in AGAIN or attempt == TRIES:
                    raise
            time.sleep(0.2 * attempt)

    def _once(self, method: str, path: str, body: Any, key: str) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with _opener.open(request, timeout=self.timeout) as response:
                answer = json.loads(response.read())
                if not isinstance(answer, dict) or not answer.keys() & RESPONSE_KEYS:
                    raise ValueError(f"{response.status}: not a response from the ledger")
                return answer
        except urllib.error.HTTPError as e:
            try:
                problem = json.loads(e.read())
            except (OSError, ValueError, HTTPException):
                problem = None
            if not isinstance(problem, dict):  # a gateway may send any body
                problem = {}
            if problem.get("limit"):
                raise Denied(e.code, problem) from None
            if "detail" not in problem:
                detail = f"{e.code} {e.reason}: not a response from the ledger"
                raise QuotaError(0, detail) from None
            raise QuotaError(e.code, problem["detail"]) from None
        except (OSError, ValueError, HTTPException) as e:
            raise QuotaError(0, str(e)) from e


class Hold:
    """Units set aside for a call. As a context manager it settles the units in used at the end;
    without them, or after an exception, it lapses into a charge."""

    def __init__(self, ledger: Ledger, made: dict[str, Any]):
        self.id: str = made["hold"]
        self.expires_at: str = made["expires_at"]
        self.units: dict[str, int] = made["units"]
        self.remaining: dict[str, int] = made["remaining"]
        self.used: Optional[dict[str, int]] = None
        self._ledger = ledger

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, *_: Any) -> None:
        if self.used is not None:
            self._ledger.settle(self.id, self.used)


class _Journal:
    """A file with a line of JSON for each settlement, and another once it is booked."""

    def __init__(self, path: str):
        self._path, self._lock = path, threading.Lock()
        self._waiting = len(self.load())

    def load(self) -> list[tuple[str, dict[str, int]]]:
        """Returns the waiting lines, oldest first. A line that a crash cut off is skipped: its
        settlement was never sent, and the hold lapses into a charge."""
        waiting: dict[str, dict[str, int]] = {}
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                rows = file.readlines()
        except FileNotFoundError:
            return []
        for row in rows:
            try:
                line = json.loads(row)
                hold = line["hold"]
            except (ValueError, TypeError, KeyError):
                continue
            if line.get("done"):
                waiting.pop(hold, None)
            else:
                waiting[hold] = line.get("used", {})
        return list(waiting.items())

    def keep(self, hold: str, used: dict[str, int]) -> None:
        with self._lock:
            self._write({"hold": hold, "used": used})
            self._waiting += 1

    def drop(self, hold: str) -> None:
        with self._lock:
            self._waiting -= 1
            if self._waiting <= 0:
                self._waiting = 0
                os.truncate(self._path, 0)
            else:
                self._write({"hold": hold, "done": True})

    def _write(self, line: dict[str, Any]) -> None:
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(fd, ("\n" + json.dumps(line) + "\n").encode())
            os.fsync(fd)
        finally:
            os.close(fd)


def _path(hold: str) -> str:
    return "/v1/holds/" + urllib.parse.quote(hold, safe="")
