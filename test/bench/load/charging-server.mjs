/**
 * The charging server that the peer asks: wallets in memory, as little as the job allows. GET
 * /api/ocs/authorize answers 200 or 402; POST /api/ocs/cdr debits one unit for each second that has
 * begun, at least one; GET /stats tells how many calls were charged.
 */
import { answer, serveCharging } from './charging-http.mjs'

const [port = '0'] = process.argv.slice(2)
const FIRST_BALANCE = 1e9
const wallets = new Map()
let charged = 0

function balanceOf(caller) {
  const balance = wallets.get(caller)
  if (balance !== undefined) return balance
  wallets.set(caller, FIRST_BALANCE)
  return FIRST_BALANCE
}

function authorize(query, response) {
  const balance = balanceOf(new URLSearchParams(query).get('caller'))
  const isAllowed = balance > 0
  answer(response, isAllowed ? 200 : 402, { allow: isAllowed, balance })
}

function debit(text, response) {
  const { caller, duration } = JSON.parse(text)
  const seconds = Math.max(1, Math.ceil(Number(duration)))
  wallets.set(caller, balanceOf(caller) - seconds)
  charged += 1
  answer(response, 200, { ok: true })
}

serveCharging(port, { authorize, debit, charged: () => charged })
