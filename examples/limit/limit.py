"""One decision of the limiter, by its script: see lua/README.md.

    limit.py HOST:PORT POLICY UNITS WINDOW_SECONDS CLIENT [COST]
"""
import hashlib
import os
import sys

import redis

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lua/limit.lua")


class Limiter:
    def __init__(self, client):
        with open(SCRIPT) as file:
            self.script = client.register_script(file.read())

    def take(self, policy, units, seconds, client, cost=1):
        """Charge cost units to client if they fit: allowed, units left, seconds to wait."""
        window = int(seconds * 1_000_000)
        digest = hashlib.sha256(client.encode()).hexdigest()[:32]
        key = f"limit:{{all}}:{policy}:log:{window}:{digest}"
        _, _, allowed, left, retry, _ = self.script(
            keys=[key], args=["log", units, window, cost, 0])
        return allowed == 1, left, retry / 1e6


if __name__ == "__main__":
    host, port = sys.argv[1].rsplit(":", 1)
    limiter = Limiter(redis.Redis(host, int(port)))
    cost = int(sys.argv[6]) if len(sys.argv) > 6 else 1
    allowed, left, wait = limiter.take(
        sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), sys.argv[5], cost)
    print(f"allowed, {left} left" if allowed else f"denied, retry in {wait:.6f}s")
