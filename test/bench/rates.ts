/** A rate plan of 100,000 lines over HTTP, and whether the API answers others meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuMicros } from './load/process-cpu.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'

export const describe =
  'import and export of 100,000 rates by a started process; argument: lines=100000'

const limitSeconds = 5

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const lines = Number(options.get('lines') ?? 100_000)
  const tollgate = await TollgateProcess.start(
    { rate_plans: [{ name: 'load', currency: 'USD' }] },
    { LOG_LEVEL: 'warn' },
  )
  try {
    const token = await tollgate.createKey('--name', 'bench', '--scopes', '*')
    const api = apiOf(tollgate, token)
    const table = tableOf(lines)
    for (const name of ['first', 'again']) {
      const watch = watchLatency(api)
      const before = cpuMicros([tollgate.pid])
      const seconds = await timed(() => api('POST', '/rates/import?rate_plan=load', table))
      const slowest = await watch.stop()
      console.log(
        `  import, ${name}: ${seconds.toFixed(2)} s for ${lines.toLocaleString('en')} rates, ` +
          `${((cpuMicros([tollgate.pid]) - before) / 1e6).toFixed(2)} s of CPU, others waited ${slowest.toFixed(0)} ms at most${seconds < limitSeconds ? '' : '  ← SLOW'}`,
      )
    }
    let exported = ''
    const seconds = await timed(async () => {
      exported = await api('GET', '/rates/export?rate_plan=load')
    })
    console.log(
      `  export: ${seconds.toFixed(2)} s, ${exported.trim().split('\n').length - 1} rates`,
    )
    const [row] = tollgate.query<{ rates: number }>('SELECT count(*) AS rates FROM rate')
    console.log(`  ${row?.rates} rates are stored${row?.rates === lines ? '' : '  ← WRONG'}`)
  } finally {
    await tollgate.stop()
  }
}

type Api = (method: string, path: string, csv?: string) => Promise<string>

function apiOf({ apiPort }: TollgateProcess, token: string): Api {
  return async (method, path, csv) => {
    const answer = await fetch(`http://127.0.0.1:${apiPort}/api/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'text/csv' },
      ...(csv !== undefined && { body: csv }),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text
  }
}

const tableOf = (lines: number): string =>
  [
    'prefix,description,rate_per_minute,connect_fee,first_increment,increment',
    ...Array.from(
      { length: lines },
      (_, index) => `${1_000_000 + index},"Destination ${index}, mobile",0.0123,0.01,60,1`,
    ),
  ].join('\n')

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return (performance.now() - startedAt) / 1_000
}

/** Asks for something small all the time; the slowest answer tells how long others were held up. */
function watchLatency(api: Api) {
  const state = { isOver: false }
  const slowest = (async () => {
    let worst = 0
    while (!state.isOver) {
      worst = Math.max(worst, await timed(() => api('GET', '/health')))
      await sleep(20)
    }
    return worst * 1_000
  })()
  return {
    stop: (): Promise<number> => {
      state.isOver = true
      return slowest
    },
  }
}
