/**
 * Authenticated `GET /api/v1/health` over keep-alive connections on loopback. What counts is the
 * server's own CPU time, because bench and server share the machine. The server is bundled as the
 * program is; `node:http` alone, asked in the same way, tells what the machine and the driver add.
 *
 * Saturated: every connection asks again as soon as it is answered; the median of several turns, the
 * two servers in turn. Half of that: requests come at a steady rate, each in its own time, and latency
 * counts from the moment a request was due. The driver has a core of its own for that: requests that it
 * sent together, because it rested, would wait for each other.
 */
import { once } from 'node:events'
import { spawn, type ChildProcess } from 'node:child_process'
import { basename } from 'node:path'
import { createInterface } from 'node:readline'
import { build } from 'esbuild'
import { HttpLoad, withoutRest } from '../support/bench/http-load.ts'

export const describe =
  'authenticated GET /api/v1/health per CPU second; p99 at half that; beside node:http alone'

const CONNECTIONS = 32
const WARM_UP_MS = 2_000
const TURNS = 7
const TURN_MS = 1_000
const PACED_MS = 5_000

export async function run(): Promise<void> {
  const servers = [
    await Server.start(new URL('../support/bench/api-server.ts', import.meta.url)),
    await Server.start(new URL('../support/bench/bare-server.ts', import.meta.url)),
  ] as const
  const [api, bare] = servers
  try {
    for (const server of servers) await server.load.saturate(WARM_UP_MS)
    for (let turn = 0; turn < TURNS; turn += 1)
      for (const server of servers) await server.takeTurn()
    console.log(`  API:             ${saturated(api)}`)
    console.log(`  node:http alone: ${saturated(bare)}`)
    const half = 1e6 / median(api.microsPerRequest) / 2
    console.log(`  API:             ${await atRate(api, half)}`)
    console.log(`  node:http alone: ${await atRate(bare, half)}`)
  } finally {
    for (const server of servers) await server.stop()
  }
}

function saturated({ microsPerRequest }: Server): string {
  const middle = median(microsPerRequest)
  const best = Math.min(...microsPerRequest)
  return (
    `saturated: ${round(1e6 / middle)} requests per CPU second ` +
    `(${middle.toFixed(1)} µs each, at best ${best.toFixed(1)})`
  )
}

async function atRate(server: Server, perSecond: number): Promise<string> {
  await server.load.paced(perSecond, WARM_UP_MS / 2, withoutRest)
  await server.ask('late')
  const before = await server.ask('cpu')
  const latencies = await server.load.paced(perSecond, PACED_MS, withoutRest)
  const cpuMicros = (await server.ask('cpu')) - before
  const late = await server.ask('late')
  const [p50, p99] = [0.5, 0.99].map((part) => `${percentile(latencies, part).toFixed(2)} ms`)
  return (
    `at ${round(perSecond)}/s: p50 ${p50}, p99 ${p99}, ` +
    `${round(cpuMicros / PACED_MS / 10)} % of a core, its loop late by ${late.toFixed(1)} ms at p99`
  )
}

class Server {
  readonly load: HttpLoad
  readonly microsPerRequest: number[] = []
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string>

  private constructor(child: ChildProcess, lines: AsyncIterator<string>, load: HttpLoad) {
    this.#child = child
    this.#lines = lines
    this.load = load
  }

  static async start(entry: URL): Promise<Server> {
    const child = spawn(process.execPath, [await bundle(entry.pathname)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const { port, tokens } = JSON.parse(await nextOf(lines)) as { port: number; tokens: string[] }
    const load = await HttpLoad.open(port, '/api/v1/health', tokens.slice(0, CONNECTIONS))
    return new Server(child, lines, load)
  }

  async takeTurn(): Promise<void> {
    const before = await this.ask('cpu')
    const answered = await this.load.saturate(TURN_MS)
    this.microsPerRequest.push(((await this.ask('cpu')) - before) / answered)
  }

  async ask(question: 'cpu' | 'late'): Promise<number> {
    this.#child.stdin?.write(`${question}\n`)
    return Number(await nextOf(this.#lines))
  }

  async stop(): Promise<void> {
    this.load.close()
    this.#child.stdin?.end()
    await once(this.#child, 'exit')
  }
}

async function nextOf(lines: AsyncIterator<string>): Promise<string> {
  const line = await lines.next()
  if (line.done === true) throw new Error('the server ended early')
  return line.value
}

/** As build.mjs does it: what the program is made of, not the sources through a loader. */
async function bundle(entry: string): Promise<string> {
  const outfile = `dist/bench/${basename(entry, '.ts')}.js`
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node22',
    format: 'esm',
    external: ['better-sqlite3', '@node-rs/argon2', 'pino'],
    banner: {
      js: [
        "import { createRequire as requireFrom } from 'node:module'",
        'const require = requireFrom(import.meta.url)',
      ].join('\n'),
    },
    logLevel: 'error',
  })
  return outfile
}

const median = (values: readonly number[]): number => percentile(values, 0.5)

function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length * part)] ?? 0
}

const round = (value: number): string => Math.round(value).toLocaleString('en')
