// Makes Express charge a quota ledger before a handler that calls a metered API.
//
//   const ledger = new Ledger('http://127.0.0.1:8080')
//   app.get('/videos/:id', charged(ledger, () => ({method: 'youtube.videos.list'})), handler)

import {Denied} from './quotabudget.mjs'

/**
 * Charges what a request takes. One that does not fit gets 429, with the seconds until it does; one
 * that never will gets 422. While the ledger cannot be reached, requests get 503 and no handler runs.
 * @param {import('./quotabudget.mjs').Ledger} ledger
 * @param {(request: import('express').Request) => import('./quotabudget.mjs').Cost} cost
 * @returns {import('express').RequestHandler}
 */
export function charged(ledger, cost) {
  return async (request, response, next) => {
    try {
      await ledger.charge(cost(request))
    } catch (e) {
      if (e instanceof Denied) {
        if (!e.never) response.set('Retry-After', String(e.retryAfter))
        return refuse(response, e.never ? 422 : 429, e.detail)
      }
      if (e.status > 0 && e.status < 500) return next(e) // an error of this program
      return refuse(response, 503, 'the quota ledger cannot be reached now')
    }
    next()
  }
}

function refuse(response, status, detail) {
  response.status(status).type('application/problem+json').send(JSON.stringify({status, detail}))
}
