/** What the port of the API answers while the process waits for its database: that it lives, and is not ready. */
import { createServer } from 'node:http'
import { ApiError } from './api-error.ts'
import { errorBody } from './error-handler.ts'

interface WaitingPlace {
  readonly host: string
  readonly port: number
}

/** Load balancers and monitoring, which ask now and then. */
const MAX_CONNECTIONS = 64
const REQUEST_MS = 5_000

const waiting = new ApiError(
  503,
  'waiting_for_database',
  'This node waits for its database server, and takes no calls',
)
const alive = JSON.stringify({ success: true, data: { status: 'ok' } })

/**
 * Resolves with the function that closes the port.
 *
 * @throws {Error} the address cannot be listened on.
 */
export async function serveWaiting(
  { host, port }: WaitingPlace,
  newId: () => string,
): Promise<() => Promise<void>> {
  const server = createServer((request, answer) => {
    const isAlive = request.method !== 'POST' && /^\/livez(?:\?|$)/.test(request.url ?? '')
    answer.writeHead(isAlive ? 200 : 503, {
      'Content-Type': 'application/json',
      'Cache-Control': 'no-store',
      ...(!isAlive && { 'Retry-After': '5' }),
      Connection: 'close',
    })
    answer.end(isAlive ? alive : JSON.stringify(errorBody(waiting, newId())))
  })
  server.maxConnections = MAX_CONNECTIONS
  server.requestTimeout = REQUEST_MS
  server.headersTimeout = REQUEST_MS
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, resolve)
  })
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
}
