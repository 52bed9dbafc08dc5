/**
 * Authenticated `GET /api/v1/health` over keep-alive connections on loopback. The driver writes
 * prepared bytes and counts answers, so that nearly all HTTP work is the server's; what counts is
 * the server's own CPU time, because bench and server share the machine.
 */
import { once } from 'node:events'
import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { openConnection, requestText, type Connection } from '../support/http-connection.ts'

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
    for (const { connection } of clients) connection.socket.destroy()
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
  readonly connection: Connection
  /** Sends one request; throws when it is not a success. */
  ask(): Promise<void>
}

async function openClient(port: number, token: string): Promise<Client> {
  const connection = await openConnection(port)
  const request = Buffer.from(requestText('GET', '/api/v1/health', token))
  return {
    connection,
    async ask() {
      connection.write(request)
      const { status, body } = await connection.answer()
      if (status !== 200) throw new Error(`${status} ${body}`)
    },
  }
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
    clients.map(async ({ ask }) => {
      for (; performance.now() < until; requests += 1) await ask()
    }),
  )
  return { requests, latencies: [] }
}

/** Requests at a steady rate whether or not earlier ones were answered: waiting counts. */
async function paced(clients: readonly Client[], perSecond: number, forMs: number): Promise<Load> {
  const start = performance.now()
  const latencies: number[] = []
  const asked: Promise<void>[] = []
  for (let elapsed = 0; elapsed < forMs; elapsed = performance.now() - start) {
    const due = Math.floor((elapsed / 1_000) * perSecond)
    while (asked.length < due) {
      const dueAt = start + (asked.length / perSecond) * 1_000
      const client = clients[asked.length % clients.length]
      const answered = client?.ask().then(() => latencies.push(performance.now() - dueAt))
      asked.push(Promise.resolve(answered).then(() => undefined))
    }
    await sleep(1)
  }
  await Promise.all(asked)
  return { requests: asked.length, latencies }
}

function percentile(values: readonly number[], part: number): string {
  const sorted = values.toSorted((a, b) => a - b)
  return (sorted[Math.floor(sorted.length * part)] ?? 0).toFixed(2)
}

const round = (value: number): string => Math.round(value).toLocaleString('en')
