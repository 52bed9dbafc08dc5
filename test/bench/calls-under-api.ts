/**
 * What an API under load adds to a call. Four phases follow each other, several times: nothing, calls
 * alone, requests alone, calls beside requests. CPU time of the process is what the operating system
 * counts. What it uses for nothing (probes, timers) is taken off each phase by the second, the API's own
 * work by the request; what is left beside the API, less what is left alone, per call, is what the API
 * adds. Requests come at one steady rate in both phases that have them, because a request costs less
 * when more of them wait: four fifths of what the process answered beside the calls when it was asked
 * all it could. The figure is the median of all turns; the first turn, in which the program is still being
 * compiled, is told and not counted, and the phases of every second turn come in the opposite order. A
 * microsecond by which requests differ between two phases counts as often as there are requests to a call,
 * so a busy machine blurs it.
 */
import { HttpLoad } from '../support/bench/http-load.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { cpuMicros } from './load/process-cpu.ts'
import { type LoadResult, placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'CPU and set-up delay of calls while the API is under load; arguments: rate=200 seconds=5 turns=5 api=0 (requests a second; 0: four fifths of all it can)'

const connections = 16

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const rate = Number(options.get('rate') ?? 200)
  const seconds = Number(options.get('seconds') ?? 5)
  const turns = Number(options.get('turns') ?? 5)
  const node = await startNode()
  const tollgate = await TollgateProcess.start(oneCustomer([node.port]), { LOG_LEVEL: 'warn' })
  try {
    const api = await HttpLoad.open(tollgate.apiPort, '/api/v1/health', await makeKeys(tollgate))
    const rig: Rig = {
      api,
      calls: () => placeCalls(tollgate.sipPort, rate, rate * seconds, caller),
      measured: (work) => measure(tollgate.pid, work),
      forMs: seconds * 1_000,
    }
    const most = await allItCan(rig)
    const perSecond = Number(options.get('api') ?? 0) || Math.floor(most * 0.8)
    report(await takeTurn(rig, perSecond))
    console.log('  warm now')
    const added: number[] = []
    while (added.length < turns)
      added.push(report(await takeTurn(rig, perSecond, added.length % 2 === 1)))
    const texts = added.map((micros) => micros.toFixed(0)).join(', ')
    console.log(`  added to a call: ${median(added).toFixed(0)} µs CPU (of ${texts}; at most 60)`)
    api.close()
  } finally {
    await tollgate.stop()
    await node.stop()
  }
}

interface Rig {
  readonly api: HttpLoad
  readonly calls: () => Promise<LoadResult>
  readonly measured: <T>(work: () => Promise<T>) => Promise<Measured<T>>
  readonly forMs: number
}

interface Measured<T> {
  readonly result: T
  readonly cpuMicros: number
  readonly seconds: number
}

/** Requests a second beside calls. The first calls and requests are compiled meanwhile, too. */
async function allItCan({ api, calls, measured }: Rig): Promise<number> {
  let isOver = false
  const { result, seconds } = await measured(async () => {
    const running = calls().finally(() => (isOver = true))
    const answered = await api.saturate(Infinity, () => isOver)
    const { setupP50Ms, setupP99Ms } = await running
    return { answered, setupP50Ms, setupP99Ms }
  })
  const perSecond = result.answered / seconds
  console.log(
    `  asked all it can: ${round(perSecond)} requests a second beside the calls, ` +
      `set-up p50 ${result.setupP50Ms.toFixed(1)} ms, p99 ${result.setupP99Ms.toFixed(1)} ms`,
  )
  return perSecond
}

interface Turn {
  readonly idle: Measured<void>
  readonly alone: Measured<LoadResult>
  /** Answered requests. */
  readonly requests: Measured<number>
  readonly both: Measured<{ readonly calls: LoadResult; readonly answered: number }>
}

async function takeTurn(
  { api, calls, measured, forMs }: Rig,
  perSecond: number,
  isReversed = false,
): Promise<Turn> {
  const ask = async (ms: number) => (await api.paced(perSecond, ms)).length
  const besideRequests = () =>
    measured(async () => {
      const [result, answered] = await Promise.all([calls(), ask(forMs)])
      return { calls: result, answered }
    })
  const idle = await measured(() => rest(forMs / 2))
  const early = isReversed ? await besideRequests() : undefined
  const alone = await measured(calls)
  const requests = await measured(() => ask(forMs))
  return { idle, alone, requests, both: early ?? (await besideRequests()) }
}

const rest = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

async function measure<T>(pid: number, work: () => Promise<T>): Promise<Measured<T>> {
  const before = { cpu: cpuMicros([pid]), at: performance.now() }
  const result = await work()
  const seconds = (performance.now() - before.at) / 1_000
  return { result, cpuMicros: cpuMicros([pid]) - before.cpu, seconds }
}

/** Answers what a call costs more beside the API. Microseconds. */
function report({ idle, alone, requests, both }: Turn): number {
  const busy = ({ cpuMicros: micros, seconds }: Measured<unknown>) =>
    micros - (idle.cpuMicros / idle.seconds) * seconds
  const perRequest = busy(requests) / requests.result
  const perCall = busy(alone) / Math.max(1, alone.result.succeeded)
  const { calls, answered } = both.result
  const underLoad = (busy(both) - answered * perRequest) / Math.max(1, calls.succeeded)
  const idlePercent = idle.cpuMicros / idle.seconds / 10_000
  console.log(
    `  idle ${idlePercent.toFixed(1)} % of a core; ${perRequest.toFixed(1)} µs CPU a request`,
  )
  print('calls alone', perCall, alone.result)
  print(`calls beside ${round(answered)} requests`, underLoad, calls)
  return underLoad - perCall
}

/** One per connection: no request shall meet the limit of its key. */
async function makeKeys(tollgate: TollgateProcess): Promise<readonly string[]> {
  const made = await tollgate.run(['key', 'create', '--name', 'root', '--scopes', '*'])
  const token = made.trim()
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  return Promise.all(
    Array.from({ length: connections }, async (_, index) => {
      const body = JSON.stringify({ name: `bench ${index}`, rate_limit_rpm: 100_000 })
      const address = `http://127.0.0.1:${tollgate.apiPort}/api/v1/application-keys`
      const answer = await fetch(address, { method: 'POST', headers, body })
      return ((await answer.json()) as { data: { token: string } }).data.token
    }),
  )
}

function print(name: string, micros: number, result: LoadResult): void {
  console.log(
    `  ${name}: ${result.succeeded} calls, ${round(micros)} µs CPU each, ` +
      `set-up p50 ${result.setupP50Ms.toFixed(1)} ms, p99 ${result.setupP99Ms.toFixed(1)} ms`,
  )
}

const round = (value: number): string => Math.round(value).toLocaleString('en')

const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? 0
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2
}
