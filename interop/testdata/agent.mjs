// Uses quotactl mcp as an agent does: PROGRAM.
import {Client} from '@modelcontextprotocol/sdk/client/index.js'
import {StdioClientTransport} from '@modelcontextprotocol/sdk/client/stdio.js'

const client = new Client({name: 'agent', version: '1'})
await client.connect(new StdioClientTransport({command: process.argv[2], env: process.env,
  args: ['mcp', '--allow-spend']}))
const {tools} = await client.listTools()
const call = (name, args) => client.callTool({name, arguments: args})
const {structuredContent: {hold}} = await call('hold', {units: 60, ttl: '1h'})
const denied = await call('hold', {units: 60, ttl: '1h'})
const settled = await call('settle', {hold, costs: {default: 7}})
const status = await call('status')
console.log(JSON.stringify({
  tools: tools.map((tool) => tool.name).sort().join(' '),
  denied: denied.isError && denied.structuredContent.retry_at !== null,
  remaining: settled.structuredContent.remaining.default,
  used: status.structuredContent.credentials[0].buckets[0].limits[0].used,
}))
await client.close()
