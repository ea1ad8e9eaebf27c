// One decision of the limiter, by its script: see lua/README.md.
//
//     limit.js HOST:PORT POLICY UNITS WINDOW_SECONDS CLIENT [COST]
const { createHash } = require('crypto');
const { readFileSync } = require('fs');
const { join } = require('path');
const { createClient } = require('redis');

const script = readFileSync(join(__dirname, '../../lua/limit.lua'), 'utf8');
const sha1 = createHash('sha1').update(script).digest('hex');

// take charges cost units to client if they fit, and returns whether they did, the units left and
// the seconds to wait.
async function take(redis, { policy, units, seconds }, client, cost = 1) {
  const window = Math.round(seconds * 1e6);
  const digest = createHash('sha256').update(client).digest('hex').slice(0, 32);
  const key = `limit:{all}:${policy}:log:${window}:${digest}`;
  const call = { keys: [key], arguments: ['log', units, window, cost, 0].map(String) };
  const [, , allowed, left, retry] = await redis.evalSha(sha1, call).catch((err) => {
    if (!err.message.startsWith('NOSCRIPT')) throw err;
    return redis.eval(script, call);
  });
  return { allowed: allowed === 1, left, wait: retry / 1e6 };
}

(async () => {
  const [address, policy, units, seconds, client, cost] = process.argv.slice(2);
  const redis = await createClient({ url: `redis://${address}` }).connect();
  const d = await take(redis, { policy, units, seconds }, client, cost);
  console.log(d.allowed ? `allowed, ${d.left} left` : `denied, retry in ${d.wait.toFixed(6)}s`);
  await redis.close();
})();
