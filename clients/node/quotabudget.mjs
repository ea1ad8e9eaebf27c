// Charges a quota ledger over HTTP: the API of quotactl serve. Needs only Node's own modules.
//
//   const ledger = new Ledger('http://127.0.0.1:8080', {journal: 'night.journal'})
//   await ledger.replay()
//   await ledger.charge({method: 'youtube.videos.list'})
//   const {hold} = await ledger.hold({method: 'youtube.videos.list', count: 4})
//   await ledger.settle(hold, {default: await fetchPages()})

import {randomUUID} from 'node:crypto'
import {closeSync, fsyncSync, openSync, readFileSync, truncateSync, writeSync} from 'node:fs'

const tries = 3 // attempts at a request whose response is lost
const again = [0, 502, 503, 504] // the ledger, or the server behind a gateway, is unavailable

/** A refusal of the server. status is 0 if the server could not be reached. */
export class QuotaError extends Error {
  /** @param {number} status @param {string} detail */
  constructor(status, detail) {
    super(status ? `quota: ${status} ${detail}` : `quota: ${detail}`)
    this.name = new.target.name
    this.status = status
    this.detail = detail
  }
}

/** A charge that does not fit now, or never. decision has the fields of quotactl spend. */
export class Denied extends QuotaError {
  /** @param {number} status @param {Decision & {detail: string}} decision */
  constructor(status, decision) {
    super(status, decision.detail)
    this.decision = decision
    this.never = decision.never
    this.retryAt = decision.retry_at && new Date(decision.retry_at)
    this.retryAfter = decision.retry_after_seconds // seconds
  }
}

/**
 * The cost of a call: count calls of method, units of bucket, or costs, units by bucket.
 * @typedef {{credential?: string, method?: string, count?: number, bucket?: string, units?: number,
 *   costs?: Record<string, number>, labels?: Record<string, string>, manual?: boolean}} Cost
 * @typedef {{allowed: boolean, units: Record<string, number>, remaining: Record<string, number>,
 *   retry_after_seconds: number|null, retry_at: string|null, never: boolean, limit: string|null,
 *   entry: string|null, replayed?: boolean}} Decision
 * @typedef {{hold: string, expires_at: string, units: Record<string, number>,
 *   remaining: Record<string, number>}} Hold
 * @typedef {{units: Record<string, number>, remaining: Record<string, number>,
 *   late: boolean}} Settled
 */

/** The ledger of one server. */
export class Ledger {
  /**
   * journal is a file that keeps the usage of calls until it is settled; each process needs its
   * own. timeout is in milliseconds.
   * @param {string} url @param {{token?: string, journal?: string, timeout?: number}} [options]
   */
  constructor(url, {token = '', journal = '', timeout = 10_000} = {}) {
    this.url = url.replace(/\/$/, '')
    this.token = token
    this.timeout = timeout
    this.journal = journal ? new Journal(journal) : null
  }

  /**
   * Takes the cost before a call. key makes it happen once. Throws Denied.
   * @param {Cost & {dry_run?: boolean}} cost @param {string} [key] @returns {Promise<Decision>}
   */
  charge(cost, key) {
    return this.#send('POST', '/v1/charges', cost, key)
  }

  /**
   * Sets the cost aside for a call whose price is known only after it. A hold that is not settled
   * within ttl becomes a charge. Throws Denied.
   * @param {Cost & {note?: string}} cost @param {{ttl?: string, key?: string}} [options]
   * @returns {Promise<Hold>}
   */
  hold(cost, {ttl = '15m', key} = {}) {
    return this.#send('POST', '/v1/holds', {...cost, ttl, lapse: 'charge'}, key)
  }

  /** Extends a hold to ttl from now, unless it already lasts longer.
   * @param {string} hold @param {string} ttl
   * @returns {Promise<{hold: string, expires_at: string}>} */
  extend(hold, ttl) {
    return this.#send('PATCH', path(hold), {ttl})
  }

  /** Books the usage of a call, by bucket. The journal keeps it until it is booked. If the journal
   * cannot be written, this fails only if the server does not book it either.
   * @param {string} hold @param {Record<string, number>} used @returns {Promise<Settled>} */
  async settle(hold, used) {
    let journalError
    try {
      this.journal?.keep(hold, used)
    } catch (e) {
      journalError = e
    }
    try {
      return await this.#settle(hold, used, !journalError)
    } catch (e) {
      if (journalError) e.message += `; journal: ${journalError.message}`
      throw e
    }
  }

  /** Returns the rest of a hold, for a call that was never sent.
   * @param {string} hold @returns {Promise<Record<string, number>>} units by bucket */
  async release(hold) {
    return (await this.#send('DELETE', path(hold))).released
  }

  /** Settles the journal entries of an earlier process, and returns their number. Call it at the
   * start. It tries to settle all of them, and then throws the last error, if any.
   * @returns {Promise<number>} */
  async replay() {
    const waiting = this.journal?.load() ?? []
    let failed
    for (const [hold, used] of waiting) {
      await this.#settle(hold, used, true).catch((e) => { failed = e })
    }
    if (failed) throw failed
    return waiting.length
  }

  async #settle(hold, used, kept) {
    try {
      const settled = await this.#send('POST', path(hold) + '/settlements',
        {costs: used, charge_lost: true})
      if (kept) this.journal?.drop(hold)
      return settled
    } catch (e) {
      // refused for good; after any other refusal, such as of a token, a retry can succeed
      if (kept && [404, 409, 422].includes(e.status)) this.journal?.drop(hold)
      throw e
    }
  }

  async #send(method, path, body, key = randomUUID()) {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#once(method, path, body, key)
      } catch (e) {
        if (!again.includes(e.status) || attempt === tries) throw e
      }
      await new Promise((done) => setTimeout(done, 200 * attempt))
    }
  }

  async #once(method, path, body, key) {
    const headers = {'Content-Type': 'application/json', 'Idempotency-Key': key}
    if (this.token) headers.Authorization = 'Bearer ' + this.token
    let response, text
    try {
      response = await fetch(this.url + path, {method, headers, body: body && JSON.stringify(body),
        redirect: 'manual', signal: AbortSignal.timeout(this.timeout)}) // a redirect loses the body
      text = await response.text()
    } catch (e) {
      throw new QuotaError(0, e.cause?.message ?? e.message)
    }
    let answer = {}
    try {
      answer = JSON.parse(text) ?? {}
    } catch { // a gateway may send any body
    }
    if (response.ok && (answer.units ?? answer.expires_at ?? answer.released)) return answer
    if (answer.limit) throw new Denied(response.status, answer)
    if (response.ok || !answer.detail) {
      const status = `${response.status} ${response.statusText}`
      throw new QuotaError(0, `${status}: not a response from the ledger`)
    }
    throw new QuotaError(response.status, answer.detail)
  }
}

/** A file with a line of JSON for each settlement, and another once it is booked. */
class Journal {
  constructor(path) {
    this.path = path
    this.waiting = this.load().length
  }

  /** Returns the waiting lines, oldest first. A line that a crash cut off is skipped: its
   * settlement was never sent, and the hold lapses into a charge. */
  load() {
    let text = ''
    try {
      text = readFileSync(this.path, 'utf8')
    } catch (e) {
      if (e.code !== 'ENOENT') throw e
    }
    const waiting = new Map()
    for (const row of text.split('\n')) {
      let line
      try {
        line = JSON.parse(row)
      } catch {
        continue
      }
      if (line.done) waiting.delete(line.hold)
      else if (line.hold) waiting.set(line.hold, line.used)
    }
    return [...waiting]
  }

  keep(hold, used) {
    this.#write({hold, used})
    this.waiting++
  }

  drop(hold) {
    if (--this.waiting <= 0) {
      this.waiting = 0
      truncateSync(this.path, 0)
    } else {
      this.#write({hold, done: true})
    }
  }

  #write(line) {
    const file = openSync(this.path, 'a', 0o600)
    try {
      writeSync(file, '\n' + JSON.stringify(line) + '\n')
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
  }
}

function path(hold) {
  return '/v1/holds/' + encodeURIComponent(hold)
}
