/**
 * Sends bodies to routes as fast as the keys of one tenant may, until its parent says "stop". In a
 * process of its own, so that it delays no clock. Answers with how often each status came.
 */
import { Agent, request } from 'node:http'

/** As many as a client may have open at an address, and some for others. */
const CONNECTIONS = 64
/** Requests of a key in a second, by the default of a key. */
const PER_KEY = 20

process.on('message', (message) => {
  if (message === 'stop') return finish()
  flood(message)
})

const statuses = {}
const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
let isOver = false

function flood({ port, method, path, type, bodies, tokens }) {
  const buffers = bodies.map((body) => Buffer.from(body, 'latin1'))
  let sent = 0
  let open = 0
  process.send('begun')
  const timer = setInterval(
    () => {
      if (isOver) return clearInterval(timer)
      if (open >= CONNECTIONS) return
      const token = tokens[sent % tokens.length]
      const body = buffers[sent % buffers.length]
      sent += 1
      open += 1
      const headers = {
        'content-type': type,
        'content-length': body.length,
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${token}`,
      }
      const asked = request({ host: '127.0.0.1', port, method, path, headers, agent }, (answer) => {
        note(answer.statusCode)
        answer.resume()
        answer.on('close', () => (open -= 1))
      })
      asked.on('error', () => {
        note('broken')
        open -= 1
      })
      asked.end(body)
    },
    1_000 / (PER_KEY * tokens.length),
  )
}

function note(status) {
  statuses[status] = (statuses[status] ?? 0) + 1
}

function finish() {
  isOver = true
  process.send(statuses, () => process.exit(0))
}
