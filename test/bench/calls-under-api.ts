/**
 * What an API under full load adds to a call. The API's own work is not the call's: it is measured
 * alone, per request, and taken off; what is left over, per call, must be small.
 */
import { openConnection, requestText } from '../support/http-connection.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { cpuMicros } from './load/process-cpu.ts'
import { type LoadResult, placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'CPU and set-up delay of calls while the API is under load; arguments: rate=200 seconds=12 api=0 (requests a second; 0: all it can)'

const caller = '15550001111'
const connections = 16
const turns = 3

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const rate = Number(options.get('rate') ?? 200)
  const seconds = Number(options.get('seconds') ?? 12)
  const perSecond = Number(options.get('api') ?? 0)
  const node = await startNode()
  const tollgate = await TollgateProcess.start(seed(node.port), { LOG_LEVEL: 'warn' })
  try {
    const tokens = await makeKeys(tollgate)
    const calls = async () => {
      const { succeeded, setupP50Ms, setupP99Ms } = await placeCalls(
        tollgate.sipPort,
        rate,
        rate * seconds,
        caller,
      )
      return { succeeded, setupP50Ms, setupP99Ms }
    }
    const api = async (until: Promise<unknown>) => load(tollgate.apiPort, tokens, perSecond, until)
    const pause = () => new Promise((resolve) => setTimeout(resolve, seconds * 1_000))
    const turn = async (): Promise<Turn> => {
      const alone = await measured(tollgate.pid, calls)
      const requests = await measured(tollgate.pid, () => api(pause()))
      const both = await measured(tollgate.pid, async () => {
        const running = calls()
        const [result, answered] = await Promise.all([running, api(running)])
        return { ...result, answered }
      })
      return { alone, requests, both }
    }
    // The first calls and requests are compiled while they run: they belong to no figure.
    await Promise.all([calls(), api(pause())])
    const added: number[] = []
    while (added.length < turns) added.push(report(await turn(), seconds))
    const median = added.toSorted((a, b) => a - b)[Math.floor(turns / 2)] ?? 0
    console.log(`  median: ${round(median)} µs CPU added to a call (at most 60)`)
  } finally {
    await tollgate.stop()
    await node.stop()
  }
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

interface Measured<T> {
  readonly result: T
  readonly micros: number
}

interface Turn {
  readonly alone: Measured<Calls>
  /** Answered requests. */
  readonly requests: Measured<number>
  readonly both: Measured<Calls & { readonly answered: number }>
}

type Calls = Pick<LoadResult, 'succeeded' | 'setupP50Ms' | 'setupP99Ms'>

/** Answers what a call costs more beside the API. */
function report({ alone, requests, both }: Turn, seconds: number): number {
  const perRequest = requests.micros / requests.result
  const perCall = alone.micros / alone.result.succeeded
  const underLoad =
    (both.micros - both.result.answered * perRequest) / Math.max(1, both.result.succeeded)
  print('calls alone', perCall, alone.result)
  console.log(
    `  API alone: ${round(requests.result / seconds)}/s, ${round(perRequest)} µs CPU each`,
  )
  print(`calls beside ${round(both.result.answered)} requests`, underLoad, both.result)
  console.log(`  added to a call: ${round(underLoad - perCall)} µs CPU`)
  return underLoad - perCall
}

async function measured<T>(pid: number, work: () => Promise<T>): Promise<Measured<T>> {
  const before = cpuMicros([pid])
  const result = await work()
  return { result, micros: cpuMicros([pid]) - before }
}

/** Asks `GET /api/v1/health` until `until`; answers how often it was answered. */
async function load(
  port: number,
  tokens: readonly string[],
  perSecond: number,
  until: Promise<unknown>,
): Promise<number> {
  const end = new AbortController()
  void until.then(() => end.abort())
  const start = performance.now()
  let asked = 0
  let answered = 0
  const isDue = () => perSecond === 0 || asked < ((performance.now() - start) / 1_000) * perSecond
  await Promise.all(
    Array.from({ length: connections }, async (_, index) => {
      const connection = await openConnection(port)
      const token = tokens[index % tokens.length]
      const request = Buffer.from(requestText('GET', '/api/v1/health', token))
      while (!end.signal.aborted) {
        if (!isDue()) {
          await new Promise((resolve) => setTimeout(resolve, 1))
          continue
        }
        asked += 1
        connection.write(request)
        const { status } = await connection.answer()
        if (status !== 200) throw new Error(`the API answered ${status}`)
        answered += 1
      }
      connection.socket.destroy()
    }),
  )
  return answered
}

function print(name: string, micros: number, result: Calls): void {
  console.log(
    `  ${name}: ${result.succeeded} calls, ${round(micros)} µs CPU each, ` +
      `set-up p50 ${result.setupP50Ms.toFixed(1)} ms, p99 ${result.setupP99Ms.toFixed(1)} ms`,
  )
}

const round = (value: number): string => Math.round(value).toLocaleString('en')

function seed(nodePort: number): object {
  return {
    rate_plans: [{ name: 'load', currency: 'USD' }],
    rates: [{ rate_plan: 'load', prefix: '', rate_per_minute: '0.01' }],
    customers: [{ name: 'load', numbers: [caller], rate_plan: 'load', balance: '1000000' }],
    dispatcher: [
      {
        ...{ endpoint_name: 'load', algorithm: 4, set_id: 1 },
        nodes: [{ host: '127.0.0.1', internal_port: nodePort }],
      },
    ],
  }
}
