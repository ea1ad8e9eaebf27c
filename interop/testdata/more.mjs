// Calls the API that its first argument names, by the client of its vendor, through the proxy at its
// second: calls that are billed, and last one beyond a limit. It prints what that one's error says.
const [name, proxy] = process.argv.slice(2);
const base = `${proxy}${name}`;
const ask = 'Say hello. [[output:20]]';
const messages = [{role: 'user', content: ask}];

const calls = {
  async gemini() {
    const {GoogleGenAI} = await import('@google/genai');
    const ai = new GoogleGenAI({apiKey: 'any', httpOptions: {baseUrl: base}});
    return () => ai.models.generateContent({model: 'gemini-2.5-flash', contents: ask});
  },
  async mistral() {
    const {Mistral} = await import('@mistralai/mistralai');
    const client = new Mistral({apiKey: 'any', serverURL: base, retryConfig: {strategy: 'none'}});
    return () => client.chat.complete({model: 'mistral-large-latest', messages, maxTokens: 50});
  },
  async openrouter() {
    const {OpenRouter} = await import('@openrouter/sdk');
    const client = new OpenRouter({apiKey: 'any', serverURL: `${base}/api/v1`,
      retryConfig: {strategy: 'none'}});
    return () => client.chat.send({chatRequest: {model: 'openai/gpt-4o', messages, maxTokens: 50}});
  },
  async 'azure-openai'() {
    const {AzureOpenAI} = await import('openai');
    const client = new AzureOpenAI({endpoint: base, apiKey: 'any', apiVersion: '2025-01-01',
      deployment: 'gpt-5-mini', maxRetries: 0});
    return () => client.chat.completions.create({model: 'gpt-5-mini', messages,
      max_completion_tokens: 50});
  },
  async bedrock() {
    const {BedrockRuntimeClient, ConverseCommand} = await import('@aws-sdk/client-bedrock-runtime');
    const {NodeHttpHandler} = await import('@smithy/node-http-handler'); // not HTTP/2
    const client = new BedrockRuntimeClient({endpoint: base, region: 'us-east-1', maxAttempts: 1,
      token: {token: 'any'}, authSchemePreference: ['httpBearerAuth'],
      requestHandler: new NodeHttpHandler()});
    return () => client.send(new ConverseCommand({modelId: 'anthropic.claude-opus-4-6-v1',
      messages: [{role: 'user', content: [{text: ask}]}], inferenceConfig: {maxTokens: 50}}));
  },
  async slack() {
    const {WebClient} = await import('@slack/web-api');
    const client = new WebClient('any', {slackApiUrl: `${base}/api/`, retryConfig: {retries: 0},
      rejectRateLimitedCalls: true});
    return async () => {
      await client.chat.postMessage({channel: 'C1', text: 'hello'});
      await client.users.list();
    };
  },
  async notion() {
    const {Client} = await import('@notionhq/client');
    const client = new Client({auth: 'any', baseUrl: base, retry: false});
    return () => client.search({query: 'hello'});
  },
};

const call = await calls[name]();
await call();
await call();
try {
  await call();
} catch (error) {
  console.log(`${error.status ?? error.statusCode ?? ''} ${error.message} ${error.body ?? ''}`);
}
