/**
 * The HTTP of the charging servers that peers ask: plain node:http, kept connections. GET
 * /api/ocs/authorize and POST /api/ocs/cdr are the server's own; GET /stats tells how many calls
 * were charged.
 */
import { createServer } from 'node:http'

export function answer(response, status, value) {
  const body = JSON.stringify(value)
  const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }
  response.writeHead(status, headers)
  response.end(body)
}

/** Prints `ready` when it listens on the port. */
export function serveCharging(port, { authorize, debit, charged }) {
  const server = createServer((request, response) => {
    const [path, query = ''] = request.url.split('?')
    if (path === '/api/ocs/authorize') return authorize(query, response)
    if (path === '/stats') return answer(response, 200, { charged: charged() })
    let text = ''
    request.setEncoding('utf8')
    request.on('data', (chunk) => (text += chunk))
    request.on('end', () => debit(text, response))
  })
  server.keepAliveTimeout = 60_000
  server.on('connection', (socket) => socket.setNoDelay(true))
  server.listen(Number(port), '127.0.0.1', 4_096, () => process.stdout.write('ready\n'))
}
