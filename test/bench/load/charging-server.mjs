/**
 * The charging server that the peer asks: plain node:http, wallets in memory, kept connections, as
 * little as the job allows. GET /api/ocs/authorize answers 200 or 402; POST /api/ocs/cdr debits one
 * unit for each second that has begun, at least one; GET /stats tells how many calls were charged.
 */
import { createServer } from 'node:http'

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

function answer(response, status, value) {
  const body = JSON.stringify(value)
  const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }
  response.writeHead(status, headers)
  response.end(body)
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

const server = createServer((request, response) => {
  const [path, query = ''] = request.url.split('?')
  if (path === '/api/ocs/authorize') return authorize(query, response)
  if (path === '/stats') return answer(response, 200, { charged })
  let text = ''
  request.setEncoding('utf8')
  request.on('data', (chunk) => (text += chunk))
  request.on('end', () => debit(text, response))
})
server.keepAliveTimeout = 60_000
server.on('connection', (socket) => socket.setNoDelay(true))
server.listen(Number(port), '127.0.0.1', 4_096, () => process.stdout.write('ready\n'))
