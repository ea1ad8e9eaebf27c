<?php
// One decision of the limiter, by its script: see lua/README.md.
//
//     limit.php HOST:PORT POLICY UNITS WINDOW_SECONDS CLIENT [COST]

class Limiter
{
    private string $script;

    public function __construct(private Redis $redis)
    {
        $this->script = file_get_contents(__DIR__ . '/../../lua/limit.lua');
    }

    /** Charges $cost units to $client if they fit: [allowed, units left, seconds to wait]. */
    public function take(string $policy, int $units, float $seconds, string $client,
        int $cost = 1): array
    {
        $window = (int) round($seconds * 1e6);
        $key = "limit:{all}:$policy:log:$window:" . substr(hash('sha256', $client), 0, 32);
        $call = [[$key, 'log', $units, $window, $cost, 0], 1];
        $reply = $this->redis->evalSha(sha1($this->script), ...$call)
            ?: $this->redis->eval($this->script, ...$call);
        [, , $allowed, $left, $retry] = $reply;
        return [$allowed === 1, $left, $retry / 1e6];
    }
}

[$host, $port] = explode(':', $argv[1]);
$redis = new Redis();
$redis->connect($host, (int) $port);
[$allowed, $left, $wait] = (new Limiter($redis))
    ->take($argv[2], (int) $argv[3], (float) $argv[4], $argv[5], (int) ($argv[6] ?? 1));
echo $allowed ? "allowed, $left left\n" : sprintf("denied, retry in %.6fs\n", $wait);
