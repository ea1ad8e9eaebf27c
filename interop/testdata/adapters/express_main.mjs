// Asks an Express server whose handler is charged to a quota ledger until it is served: URL.
import express from 'express'
import {setTimeout} from 'node:timers/promises'

import {charged} from './express_quota.mjs'
import {Ledger} from './quotabudget.mjs'

const app = express()
app.get('/never', charged(new Ledger(process.argv[2]), () => ({units: 2})))
app.get('/away', charged(new Ledger('http://127.0.0.1:1'), () => ({units: 1})))
app.get('/fetch', charged(new Ledger(process.argv[2]), () => ({units: 1})),
  (request, response) => response.send('done at attempt 1'))
const server = app.listen(0, '127.0.0.1', async () => {
  const get = (path) => fetch(`http://127.0.0.1:${server.address().port}${path}`)
  for (const [path, status] of [['/never', 422], ['/away', 503]]) {
    const response = await get(path)
    if (response.status !== status) throw new Error(`${path}: ${response.status}`)
  }
  for (;;) {
    const response = await get('/fetch')
    if (response.ok) {
      console.log(await response.text())
      break
    }
    const wait = 1000 * Number(response.headers.get('retry-after'))
    console.log('denied until', new Date(Date.now() + wait).toISOString())
    await setTimeout(wait)
  }
  server.close()
})
