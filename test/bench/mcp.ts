/**
 * Tool calls over `/mcp` against the program as it is installed: a database file, an audit entry for
 * every call. What counts is the process's own CPU time, and how late its event loop is meanwhile.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request, type RequestOptions } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'CPU per tool call over /mcp, at most 1.5 ms; event loop under 100 agents and 200 calls/s'

const WARM_UP_CALLS = 500
const MEASURED_CALLS = 3_000
const AGENTS = 100
const CALLS_PER_AGENT_AND_SECOND = 2
const AGENTS_MS = 12_000
const SIP_CALLS_PER_SECOND = 200
const caller = '15550001111'

export async function run(): Promise<void> {
  const node = await startNode()
  const server = await startServer(node.port)
  try {
    for (const era of ['2026-07-28', '2025-11-25'] as const)
      for (const tool of ['get_dispatcher_status', 'list_sbc_api_keys', 'search_cdrs']) {
        const ask = () => server.post('/mcp', message(era, tool), headersOf(era, tool))
        await times(WARM_UP_CALLS, ask)
        const before = await server.telemetry()
        await times(MEASURED_CALLS, ask)
        const after = await server.telemetry()
        const spent = ((after.cpuSeconds - before.cpuSeconds) / MEASURED_CALLS) * 1_000
        console.log(`  ${era} ${tool.padEnd(22)} ${spent.toFixed(2)} ms CPU per call`)
      }
    const idle = (await server.telemetry()).lagMs
    const calls = SIP_CALLS_PER_SECOND * (AGENTS_MS / 1_000)
    const load = placeCalls(server.sipPort, SIP_CALLS_PER_SECOND, calls, caller)
    const latencies = await manyAgents(server)
    const { lagMs } = await server.telemetry()
    const { succeeded } = await load
    console.log(
      `  ${AGENTS} agents, ${AGENTS * CALLS_PER_AGENT_AND_SECOND} tool calls/s beside ${SIP_CALLS_PER_SECOND} calls/s ` +
        `(${succeeded} of ${calls} succeeded): event-loop lag p99 ${lagMs.toFixed(1)} ms ` +
        `(before ${idle.toFixed(1)} ms), answers p99 ${percentile(latencies, 0.99).toFixed(1)} ms`,
    )
  } finally {
    await server.stop()
    await node.stop()
  }
}

function message(era: string, name: string): string {
  const modern = {
    'io.modelcontextprotocol/protocolVersion': era,
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const params = { name, arguments: {}, ...(era === '2026-07-28' && { _meta: modern }) }
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
}

const headersOf = (era: string, name: string): Record<string, string> => ({
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': era,
  ...(era === '2026-07-28' && { 'mcp-method': 'tools/call', 'mcp-name': name }),
})

/** Eight at a time, so that nothing waits for the client. */
async function times(count: number, ask: () => Promise<string>): Promise<void> {
  let left = count
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (; left > 0; left -= 1) await ask()
    }),
  )
}

async function manyAgents(server: BenchServer): Promise<number[]> {
  const latencies: number[] = []
  const until = performance.now() + AGENTS_MS
  const agent = async (index: number): Promise<void> => {
    await sleep((index / AGENTS) * 500)
    while (performance.now() < until) {
      const begun = performance.now()
      const tool = index % 2 === 0 ? 'get_dispatcher_status' : 'list_active_calls'
      await server.post('/mcp', message('2026-07-28', tool), headersOf('2026-07-28', tool))
      latencies.push(performance.now() - begun)
      await sleep(Math.max(0, 1_000 / CALLS_PER_AGENT_AND_SECOND - (performance.now() - begun)))
    }
  }
  await Promise.all(Array.from({ length: AGENTS }, (_, index) => agent(index)))
  return latencies
}

interface BenchServer {
  readonly sipPort: number
  /** The body of a 200; throws for anything else. */
  post(path: string, body: string, headers?: Record<string, string>): Promise<string>
  telemetry(): Promise<{ cpuSeconds: number; lagMs: number }>
  stop(): Promise<void>
}

async function startServer(nodePort: number): Promise<BenchServer> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-'))
  const env = {
    PATH: process.env['PATH'] ?? '',
    DATABASE_PATH: join(folder, 'tollgate.db'),
    SIP_LISTEN: 'udp/127.0.0.1:0',
    API_LISTEN: '127.0.0.1:0',
    EDGE_LISTEN: '127.0.0.1:0',
    LOG_LEVEL: 'error',
  }
  const program = (...words: string[]): ChildProcess =>
    spawn(process.execPath, ['dist/main.js', ...words], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
  const seedFile = join(folder, 'seed.json')
  writeFileSync(seedFile, JSON.stringify(seedFor(nodePort)))
  await once(program('seed', seedFile, '--create'), 'exit')
  const child = program('serve')
  const ready = await lineOf(child, 'ready ')
  const port = /api=127\.0\.0\.1:(\d+)/.exec(ready)?.[1] ?? ''
  const root = await lineOf(program('key', 'create', '--name', 'root', '--scopes', '*'), 'sbc_')
  const agent = new Agent({ keepAlive: true, maxSockets: AGENTS })
  const ask = (method: string, path: string, key: string, body = '', more = {}) =>
    answered({ agent, port, method, path, headers: { ...json, 'x-api-key': key, ...more } }, body)
  const wanted = { name: 'bench', scopes: ['*:read'], rate_limit_rpm: 100_000 }
  const made = await ask('POST', '/api/v1/application-keys', root, JSON.stringify(wanted))
  const { token } = (JSON.parse(made) as { data: { token: string } }).data
  return {
    sipPort: Number(/sip=udp\/127\.0\.0\.1:(\d+)/.exec(ready)?.[1]),
    post: (path, body, headers) => ask('POST', path, token, body, headers),
    async telemetry() {
      const text = await ask('GET', '/api/v1/metrics/telemetry', root)
      const { data } = JSON.parse(text) as {
        data: { process: { cpu_seconds: number }; event_loop: { lag_p99_ms: number } }
      }
      return { cpuSeconds: data.process.cpu_seconds, lagMs: data.event_loop.lag_p99_ms }
    },
    async stop() {
      agent.destroy()
      child.kill('SIGTERM')
      await once(child, 'exit')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

const seedFor = (nodePort: number): object => ({
  rate_plans: [{ name: 'load', currency: 'USD' }],
  rates: [{ rate_plan: 'load', prefix: '1', rate_per_minute: '0.01' }],
  customers: [{ name: 'load', rate_plan: 'load', numbers: [caller], balance: '1000000.00' }],
  dispatcher: [
    {
      endpoint_name: 'load',
      set_id: 1,
      algorithm: 8,
      nodes: [{ host: '127.0.0.1', internal_port: nodePort }],
    },
  ],
})

const json = { 'content-type': 'application/json' }

async function lineOf(child: ChildProcess, beginning: string): Promise<string> {
  if (child.stdout !== null)
    for await (const line of createInterface({ input: child.stdout }))
      if (line.startsWith(beginning)) {
        child.stdout.resume()
        return line
      }
  throw new Error(`the program said no line with ${beginning}`)
}

function answered(options: RequestOptions, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request(options, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk))
      response.on('error', reject)
      response.on('end', () => {
        const { statusCode = 0 } = response
        const isDone = statusCode < 300 && !text.includes('"isError":true')
        if (isDone) resolve(text)
        else reject(new Error(`${statusCode} ${text}`))
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length * part)] ?? 0
}
