// Runs the Node client of the ledger over HTTP: URL JOURNAL STEP... Prints a word for each step.
import {Denied, Ledger} from '../../../clients/node/quotabudget.mjs'

const [url, journal, ...steps] = process.argv.slice(2)
const ledger = new Ledger(url, {token: process.env.TOKEN, journal})
let hold
for (const step of steps) {
  const [verb, n] = step.split('=')
  if (verb === 'settle' && !hold) {
    console.log('none')
    continue
  }
  if (verb === 'hold') hold = undefined
  try {
    if (verb === 'charge') await ledger.charge({units: Number(n)})
    if (verb === 'hold') hold = (await ledger.hold({units: Number(n)}, {ttl: '1h'})).hold
    if (verb === 'settle') await ledger.settle(hold, {default: Number(n)})
    if (verb === 'release') await ledger.release(hold)
    if (verb === 'extend') await ledger.extend(hold, '2h')
    if (verb === 'replay') await ledger.replay()
    console.log('ok')
  } catch (e) {
    const waits = e instanceof Denied && e.retryAt > new Date()
    console.log(e.never ? 'never' : waits ? 'denied' : 'failed')
  }
}
