/**
 * Authenticated `GET /api/v1/health` over keep-alive connections on loopback. The driver writes
 * prepared bytes and counts answers, so that nearly all HTTP work is the server's; what counts is
 * the server's own CPU time, because bench and server share the machine.
 */
import { once } from 'node:events'
import { spawn, type ChildProcess } from 'node:child_process'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'

export const describe = 'authenticated GET /api/v1/health per CPU second; p99 at half that'

const CONNECTIONS = 32
const WARM_UP_MS = 2_000
const MEASURE_MS = 4_000

export async function run(): Promise<void> {
  const server = await startServer()
  try {
    const clients = await Promise.all(
      Array.from({ length: CONNECTIONS }, (_, index) =>
        openClient(server.port, server.tokens[index % server.tokens.length] ?? ''),
      ),
    )
    await saturate(clients, WARM_UP_MS)
    const full = await measured(server, () => saturate(clients, MEASURE_MS))
    const perCpuSecond = full.requests / full.cpuSeconds
    console.log(`  saturated: ${round(perCpuSecond)} requests per CPU second`)
    console.log(`             ${round(1e6 / perCpuSecond)} µs CPU per request`)
    const half = await measured(server, () => paced(clients, perCpuSecond / 2, MEASURE_MS))
    console.log(
      `  at ${round(half.requests / (MEASURE_MS / 1_000))}/s: p50 ${percentile(half.latencies, 0.5)} ms, ` +
        `p99 ${percentile(half.latencies, 0.99)} ms, ${round((half.cpuSeconds / (MEASURE_MS / 1_000)) * 100)} % of a core`,
    )
    for (const client of clients) client.socket.destroy()
  } finally {
    server.child.stdin?.end()
    await once(server.child, 'exit')
  }
}

interface BenchServer {
  readonly child: ChildProcess
  readonly port: number
  readonly tokens: readonly string[]
  cpuMicros(): Promise<number>
}

async function startServer(): Promise<BenchServer> {
  const script = new URL('../support/bench/api-server.ts', import.meta.url).pathname
  const child = spawn(process.execPath, ['--import', 'tsx', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const nextLine = async (): Promise<string> => {
    const line = await lines.next()
    if (line.done === true) throw new Error('the server ended early')
    return line.value
  }
  const { port, tokens } = JSON.parse(await nextLine()) as { port: number; tokens: string[] }
  return {
    child,
    port,
    tokens,
    async cpuMicros() {
      child.stdin.write('cpu\n')
      return Number(await nextLine())
    },
  }
}

interface Client {
  readonly socket: Socket
  /** Sends one request; answers within the order of requests. */
  send(answered: () => void): void
}

/** Every answer to the same request is of the same length, but for digits of the rate headers. */
async function openClient(port: number, token: string): Promise<Client> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true })
  await once(socket, 'connect')
  const request = Buffer.from(
    `GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`,
  )
  const waiting: (() => void)[] = []
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
    for (let end = endOfAnswer(text); end !== -1; end = endOfAnswer(text)) {
      if (!text.startsWith('HTTP/1.1 200')) throw new Error(text.slice(0, end))
      text = text.slice(end)
      waiting.shift()?.()
    }
  })
  return {
    socket,
    send(answered) {
      waiting.push(answered)
      socket.write(request)
    },
  }
}

function endOfAnswer(text: string): number {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return -1
  const length = /content-length: (\d+)/i.exec(text.slice(0, end))?.[1]
  const whole = end + 4 + Number(length)
  return text.length >= whole ? whole : -1
}

interface Load {
  readonly requests: number
  /** Milliseconds, unordered. */
  readonly latencies: readonly number[]
}

async function measured(server: BenchServer, drive: () => Promise<Load>) {
  const before = await server.cpuMicros()
  const load = await drive()
  return { ...load, cpuSeconds: ((await server.cpuMicros()) - before) / 1e6 }
}

/** Every connection asks again as soon as it is answered. */
async function saturate(clients: readonly Client[], forMs: number): Promise<Load> {
  const until = performance.now() + forMs
  let requests = 0
  await Promise.all(
    clients.map(
      (client) =>
        new Promise<void>((resolve) => {
          const again = (): void => {
            requests += 1
            if (performance.now() < until) client.send(again)
            else resolve()
          }
          client.send(again)
        }),
    ),
  )
  return { requests, latencies: [] }
}

/** Requests at a steady rate whether or not earlier ones were answered: waiting counts. */
async function paced(clients: readonly Client[], perSecond: number, forMs: number): Promise<Load> {
  const start = performance.now()
  const latencies: number[] = []
  let sent = 0
  let ended = 0
  await new Promise<void>((resolve) => {
    const turn = (): void => {
      const elapsed = performance.now() - start
      const due = Math.floor((Math.min(elapsed, forMs) / 1_000) * perSecond)
      for (; sent < due; sent += 1) {
        const dueAt = start + (sent / perSecond) * 1_000
        clients[sent % clients.length]?.send(() => {
          latencies.push(performance.now() - dueAt)
          ended += 1
          if (ended === sent && performance.now() - start >= forMs) resolve()
        })
      }
      if (elapsed < forMs) setTimeout(turn, 1)
    }
    turn()
  })
  return { requests: ended, latencies }
}

function percentile(values: readonly number[], part: number): string {
  const sorted = values.toSorted((a, b) => a - b)
  return (sorted[Math.floor(sorted.length * part)] ?? 0).toFixed(2)
}

const round = (value: number): string => Math.round(value).toLocaleString('en')
