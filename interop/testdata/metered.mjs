// Runs after the snippets of docs/examples-metered.md, which make openai, anthropic and github, with
// a plan as its argument:
//
//	{"models": {"openai": NAME, "anthropic": NAME}, "warm": N, "streams": N, "queries": N,
//	 "short": TOKENS, "long": TOKENS, "most": TOKENS}
//
// It makes so many small calls one after another, then the streams side by side, each third of which
// it cuts in the middle, and the queries beside them. It prints "warm" and waits for a line, prints
// "begun" when each stream has begun or was refused, and at its end what it saw as one JSON object.
const plan = JSON.parse(process.argv[2]);
const seen = {calls: 0, whole: 0, cut: 0, denied: 0, broken: 0, queries: 0, errors: []};

const words = (i, tokens) => `${String(i).padStart(4, '0')} [[output:${tokens}]]`;
const chat = (i, tokens, more) => openai.chat.completions.create({
  model: plan.models.openai, max_tokens: plan.most,
  messages: [{role: 'user', content: words(i, tokens)}], ...more,
});
const message = (i, tokens, more) => anthropic.messages.create({
  model: plan.models.anthropic, max_tokens: plan.most,
  messages: [{role: 'user', content: words(i, tokens)}], ...more,
});
const ask = [
  {call: chat, options: {stream: true, stream_options: {include_usage: true}}},
  {call: message, options: {stream: true}},
];

// failed counts an error by what it means.
function failed(error) {
  if (error.status === 429) seen.denied++;
  else seen.broken++;
  seen.errors.push(`${error.status ?? ''} ${error.message}`);
}

// stream reads one, or only the beginning of it.
async function stream(i, begun) {
  const {call, options} = ask[i % 2];
  try {
    let events = 0;
    for await (const _ of await call(1000 + i, plan.long, options)) {
      if (++events === 1) begun();
      if (i % 3 === 0 && events === 9) {
        seen.cut++;
        return; // which aborts the request
      }
    }
    seen.whole++;
  } catch (error) {
    failed(error);
  }
  begun();
}

async function query() {
  const {rateLimit} = await github(`{
    viewer { repositories(first: 100) { nodes { issues(first: 10) { nodes { title } } } } }
    rateLimit { cost }
  }`);
  seen.queries += rateLimit.cost;
}

for (let i = 0; i < plan.warm; i++) {
  for (const {call} of ask) {
    const {usage} = await call(i, plan.short);
    if (usage) seen.calls++;
  }
}
console.log('warm');
await new Promise(resolve => process.stdin.once('data', resolve));
process.stdin.unref?.();

const all = [];
const started = Array.from({length: plan.streams}, (_, i) => new Promise(resolve => {
  all.push(stream(i, resolve));
}));
for (let i = 0; i < plan.queries; i++) all.push(query().catch(failed));
Promise.all(started).then(() => console.log('begun'));
await Promise.all(all);
console.log(JSON.stringify(seen));
