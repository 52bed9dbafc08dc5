/**
 * Authenticated `GET /api/v1/health` over keep-alive connections on loopback, each of which asks
 * again as soon as it is answered. What counts is the CPU time of the program, because bench and
 * program share the machine.
 */
import { TollgateProcess } from '../support/tollgate-process.ts'
import { percentile, spread } from './load/figures.ts'
import { HttpLoad } from './load/http-load.ts'
import { cpuMicros } from './load/process-cpu.ts'

export const describe = 'CPU µs of an authenticated GET /api/v1/health, and how long it takes'

const CONNECTIONS = 32
const WARM_UP_MS = 3_000
const TURNS = 7
const TURN_MS = 2_000

export async function run(): Promise<void> {
  const tollgate = await TollgateProcess.start({}, { LOG_LEVEL: 'warn' })
  const load = await HttpLoad.open(tollgate.apiPort, '/api/v1/health', await keysOf(tollgate))
  try {
    await load.saturate(WARM_UP_MS)
    const micros: number[] = []
    const times: number[] = []
    for (let turn = 0; turn < TURNS; turn += 1) {
      const before = cpuMicros([tollgate.pid])
      const taken = await load.saturate(TURN_MS)
      micros.push((cpuMicros([tollgate.pid]) - before) / taken.length)
      times.push(...taken)
    }
    const [p50, p99] = [0.5, 0.99].map((part) => percentile(times, part).toFixed(2))
    console.log(`  ${spread(micros, 1)} µs each, ${CONNECTIONS} at once: p50 ${p50}, p99 ${p99} ms`)
  } finally {
    load.close()
    await tollgate.stop()
  }
}

/** No request shall meet the limit; its window is kept as exactly as any other. */
async function keysOf(tollgate: TollgateProcess): Promise<readonly string[]> {
  const first = await tollgate.createKey('--name', 'bench', '--scopes', '*')
  return Promise.all(
    Array.from({ length: CONNECTIONS }, async (_, index) => {
      const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1/application-keys`, {
        method: 'POST',
        headers: { authorization: `Bearer ${first}`, 'content-type': 'application/json' },
        body: JSON.stringify({ name: `bench ${index}`, rate_limit_rpm: 100_000 }),
      })
      const { data } = (await answer.json()) as { data: { token: string } }
      return data.token
    }),
  )
}
