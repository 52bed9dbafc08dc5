/**
 * The SIP server in a process of its own, with an application that answers every call whose Call-ID
 * begins with `call-` and refuses the others. It says its port when it is ready and answers every
 * message with its figures; `reset` begins a new measurement of the event loop's lag.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createSipServer } from '../../../engine/sip-server/index.ts'
import { readEvent } from '../wire-events.ts'

export interface ServerFigures {
  readonly port: number
  readonly rssBytes: number
  readonly heapBytes: number
  readonly dialogs: number
  /** Datagrams that were taken from the socket. */
  readonly received: number
  readonly lagP99Ms: number
  readonly cpuMicros: number
  /** What was logged as an error. */
  readonly errors: readonly string[]
}

const errors: string[] = []
let received = 0
const server = createSipServer({
  listen: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }],
  secret: 'bench',
  limits: { maxDialogs: 100_000 },
  // With the argument `fast` a transaction lives for 0.3 s instead of 32.
  timers: process.argv[2] === 'fast' ? { t1Ms: 5, t2Ms: 40, t4Ms: 50, applicationMs: 500 } : {},
  admit: () => {
    received += 1
    return true
  },
  log: (level, message, fields) => {
    if (level === 'error' && errors.length < 20) errors.push(`${message} ${JSON.stringify(fields)}`)
  },
})
await server.start()

const sdp =
  'v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 0\r\n'
let commands = 0
const link = server.connectInProcess({
  onPayload: (payload) => {
    const { kind, source, transactionId, sip } = readEvent(payload)
    const isRequest = kind === 'sip' && source === 'network' && !sip.startsWith('SIP')
    if (isRequest && transactionId !== '') answer(transactionId, sip)
  },
  onClose: () => undefined,
})
const command = (words: string): void => link.send(`c${++commands}|${words}`)
command('authenticate|bench|')
for (const verb of ['invite', 'options', 'message', 'register', 'subscribe', 'notify', 'refer'])
  command(`route|${verb}`)

function answer(transactionId: string, request: string): void {
  if (request.startsWith('ACK ') || request.startsWith('CANCEL ')) return
  const isCall = /^(Call-ID|i): *call-/im.test(request)
  const isInvite = request.startsWith('INVITE ')
  const [status, body] = !isInvite ? ['200 OK', ''] : isCall ? ['200 OK', sdp] : ['486 Busy', '']
  const type = body === '' ? '' : 'Content-Type: application/sdp\r\n'
  command(`sip|${transactionId}|\r\nSIP/2.0 ${status}\r\n${type}\r\n${body}`)
}

const lag = monitorEventLoopDelay({ resolution: 1 })
lag.enable()

function figures(): ServerFigures {
  // Read first: collecting garbage is a lag of its own.
  const lagP99Ms = lag.percentile(99) / 1e6
  global.gc?.()
  const { rss, heapUsed } = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  return {
    port: server.listeners[0]?.port ?? 0,
    rssBytes: rss,
    heapBytes: heapUsed,
    received,
    errors,
    cpuMicros: user + system,
    dialogs: server.stats()['dialogs'] ?? 0,
    lagP99Ms,
  }
}

process.on('message', (message) => {
  if (message === 'count') process.send?.({ received })
  else process.send?.(figures())
  if (message === 'reset') lag.reset()
})
process.on('disconnect', () => process.exit())
process.send?.(figures())
