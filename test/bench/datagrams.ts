/** What the internet sends to port 5060: bytes without meaning, and SIP that was bent. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { AnsweringProcess } from '../support/bench/answering-process.ts'
import { SteadyCallers } from '../support/bench/steady-callers.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { requestOf, responseOf, sdp } from '../support/sip-core.ts'
import { bentOften } from '../simulation/fuzz.ts'

export const describe =
  '1,000,000 random datagrams and the call right after; arguments: count=1000000 seed=1'

/** Fits into the socket's buffer, so that none is lost on the way. */
const burst = 500
/** A refused caller comes back so often. */
const maxTries = 10
/** What may be left over: a heap is never exactly as large as before. */
const maxGrowthBytes = 10_000_000

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const count = Number(options.get('count') ?? 1_000_000)
  const random = seededRandom(Number(options.get('seed') ?? 1))
  const server = await AnsweringProcess.start(['fast'])
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  try {
    // A tenth first: what the memory of the others is compared with.
    const first = await flood(server, socket, random, count / 10)
    const before = await rested(server)
    const rest = await flood(server, socket, random, count - count / 10)
    const after = await rested(server)
    const growth = after.heapBytes - before.heapBytes
    const perSecond = (rest.sent / rest.ms) * 1_000
    console.log(
      `  ${first.sent + rest.sent} sent, ${after.received} read, ${perSecond.toFixed(0)} a second; ` +
        `heap ${megabytes(growth)} larger, resident ${megabytes(after.rssBytes - before.rssBytes)}`,
    )
    const callers = await SteadyCallers.open(server.port)
    const askedAt = performance.now()
    // 503 with Retry-After is an answer of the overload protection: the caller comes back.
    for (let tries = 0; tries < maxTries && callers.ended === 0; tries++)
      await callers.place(1, 100, 0)
    callers.close()
    const neededMs = performance.now() - askedAt
    const { dialogs, errors } = await server.figures()
    console.log(
      `  the call right after: answered ${callers.answered}, ended ${callers.ended}, ` +
        `refused before ${callers.refused}, in ${(neededMs / 1_000).toFixed(1)} s; ${dialogs} dialogs left, ${errors.length} errors`,
    )
    for (const error of errors) console.log(`  ${error.slice(0, 300)}`)
    const isWell = callers.ended === 1 && dialogs === 0 && errors.length === 0
    if (!isWell || growth > maxGrowthBytes) process.exitCode = 1
  } finally {
    socket.close()
    server.stop()
  }
}

async function flood(
  server: AnsweringProcess,
  socket: ReturnType<typeof createSocket>,
  random: () => number,
  count: number,
): Promise<{ sent: number; ms: number }> {
  const startedAt = performance.now()
  for (let sent = 0; sent < count; sent += burst) {
    const before = await server.received()
    for (let index = 0; index < burst; index++)
      socket.send(datagram(random), server.port, '127.0.0.1')
    // Not every one is counted: white space is dropped as a keep-alive, and overload drops calls.
    for (let waits = 0; waits < 20; waits++)
      if ((await server.received()) >= before + burst * 0.9) break
  }
  return { sent: count, ms: performance.now() - startedAt }
}

/** Once every transaction has ended. */
async function rested(server: AnsweringProcess) {
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  return server.figures()
}

const methods = [
  'INVITE',
  'ACK',
  'BYE',
  'CANCEL',
  'OPTIONS',
  'REGISTER',
  'MESSAGE',
  'UPDATE',
  'INFO',
]

function datagram(random: () => number): Buffer {
  if (random() < 0.3) {
    const bytes = Buffer.alloc(1 + Math.floor(random() * 600))
    for (let index = 0; index < bytes.length; index++) bytes[index] = random() * 256
    return bytes
  }
  const number = Math.floor(random() * 1e9).toString(36)
  const method = methods[Math.floor(random() * methods.length)] ?? 'OPTIONS'
  const names = { callId: `c${number}`, fromTag: `f${number}`, branch: `z9hG4bK${number}` }
  const request = requestOf(method, { ...names, body: method === 'INVITE' ? sdp : '' })
  const text = random() < 0.2 ? responseOf(request, 100 + Math.floor(random() * 600)) : request
  return Buffer.from(bentOften(text, random).slice(0, 60_000))
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`
