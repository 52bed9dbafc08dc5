/**
 * A deck of 500,000 lines against the program as it runs: compared, imported, exported and undone.
 * What counts beside the time is how late the event loop is meanwhile, because calls wait for it,
 * and how much memory it takes.
 */
import { TollgateProcess } from '../support/tollgate-process.ts'
import { LoopWatch } from './load/loop-lag.ts'
import { numbersOf } from './load/options.ts'
import { cpuMicros, residentMegabytes } from './load/process-cpu.ts'
import { type Row, reportRows } from './load/rows.ts'

export const describe = 'a deck of 500,000 lines: its import, undo and export (lines=500000)'

const MAX_SECONDS = 15
const MAX_LAG_MS = 20
const MAX_MORE_MB = 200
const SAMPLE_MS = 200

const mapping = {
  columns: {
    prefix: 'Code',
    description: 'Destination',
    rate_per_minute: 'Rate',
    increments: 'Increment',
  },
}

export async function run(words: readonly string[]): Promise<void> {
  const { lines } = numbersOf(words, { lines: 500_000 })
  const watch = new LoopWatch()
  const tollgate = await TollgateProcess.start({}, { LOG_LEVEL: 'warn', ...watch.environment })
  try {
    const key = await tollgate.createKey('--name', 'bench', '--scopes', '*')
    const api = apiOf(tollgate.apiPort, key)
    await api('POST', '/rate-plans', JSON.stringify({ name: 'deck' }), 'application/json')
    const query = new URLSearchParams({ rate_plan: 'deck', mapping: JSON.stringify(mapping) })
    const deck = deckOf(lines, 100)
    const dearer = deckOf(lines, 107)
    const rows: Row[] = []
    const measured = async (name: string, work: () => Promise<string>): Promise<string> => {
      await watch.lagOf(tollgate)
      const before = residentMegabytes(tollgate.pid)
      let most = before
      const sampling = setInterval(() => {
        most = Math.max(most, residentMegabytes(tollgate.pid))
      }, SAMPLE_MS)
      const cpuBefore = cpuMicros([tollgate.pid])
      const start = performance.now()
      const answer = await work().finally(() => clearInterval(sampling))
      const seconds = (performance.now() - start) / 1_000
      const cpuSeconds = (cpuMicros([tollgate.pid]) - cpuBefore) / 1e6
      const { p99Ms, maxMs } = await watch.lagOf(tollgate)
      rows.push(
        [
          `${name}: seconds (of a core: ${cpuSeconds.toFixed(1)})`,
          seconds.toFixed(1),
          seconds <= MAX_SECONDS,
        ],
        [
          `${name}: loop p99 ms (longest ${maxMs.toFixed(0)})`,
          p99Ms.toFixed(1),
          p99Ms <= MAX_LAG_MS,
        ],
        [`${name}: MB more`, (most - before).toFixed(0), most - before <= MAX_MORE_MB],
      )
      return answer
    }
    const post = (step: string, body: Buffer) => () =>
      api('POST', `/rates/decks${step}?${query.toString()}`, body, 'application/octet-stream')
    await measured('import into an empty plan', post('', deck))
    await measured('diff', post('/diff', dearer))
    await measured('import that makes all dearer', post('', dearer))
    await measured('export', () => api('GET', '/rates/export?rate_plan=deck'))
    await measured('undo', () => api('POST', '/rates/decks/2/undo'))
    reportRows(rows)
  } finally {
    await tollgate.stop()
    watch.close()
  }
}

const apiOf =
  (port: number, key: string) =>
  async (method: string, path: string, body?: string | Buffer, type = ''): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(type !== '' && { 'content-type': type }) },
      ...(body !== undefined && { body: typeof body === 'string' ? body : new Uint8Array(body) }),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 500)}`)
    return text
  }

/** Prefixes of seven digits, three thousand destinations. */
function deckOf(lines: number, cents: number): Buffer {
  const all = Array.from(
    { length: lines },
    (_, n) =>
      `${1_000_000 + n * 3},Destination ${n % 3_000},0.0${cents + (n % 800)},${n % 2 === 0 ? '1/1' : '30/6'}`,
  )
  return Buffer.from(`Code,Destination,Rate,Increment\n${all.join('\n')}\n`)
}
