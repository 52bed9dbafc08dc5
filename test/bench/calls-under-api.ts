/**
 * What requests to the API add to a call. Calls come at a steady rate, and requests at another one, in every second
 * slice of 2 s: what a slice with requests takes more than one without them is compared with the same difference
 * while no calls come. What is left, per call, is the figure. Both differences are of neighbours, so neither what the
 * process does anyway nor a machine that changes its speed is in them. The number of requests is the same, and small
 * (as many µs of requests as a third of a core): what one request costs differs by 20 µs with what waits beside
 * it, and that counts as often as there are requests to a call. In further slices another program gets the same
 * requests: what a call then takes more is what two full processors cost any program, and none of it is the API's. CPU
 * time is what the operating system counts. The first turn, in which the programs are compiled, does not count.
 */
import { HttpLoad } from '../support/bench/http-load.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { median, spread } from './load/figures.ts'
import { type LoopLag, LoopWatch } from './load/loop-lag.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { cpuMicros } from './load/process-cpu.ts'
import { type LoadResult, placeCalls, startNode } from './load/sipp-load.ts'

export const describe =
  'what requests to the API add to the CPU time of calls; ' +
  'arguments: rate=500 seconds=36 turns=5 api=6000 (requests a second)'

const connections = 16
const SLICE_MS = 2_000
/** Where the requests go. Forth and back: what grows steadily is in all alike. */
const SLICES = ['nowhere', 'here', 'elsewhere', 'elsewhere', 'here', 'nowhere'] as const
const MOST_ADDED_MICROS = 60

export async function run(words: readonly string[] = []): Promise<void> {
  const options = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const number = (name: string, standard: number) => Number(options.get(name) ?? standard)
  const rate = number('rate', 500)
  const rounds = Math.max(
    1,
    Math.floor((number('seconds', 36) * 1_000) / (SLICE_MS * SLICES.length)),
  )
  const perSecond = number('api', 6_000)
  const node = await startNode()
  const watch = new LoopWatch()
  const tollgate = await TollgateProcess.start(oneCustomer([node.port]), {
    LOG_LEVEL: 'warn',
    ...watch.environment,
  })
  const elsewhere = await TollgateProcess.start(oneCustomer([node.port]), { LOG_LEVEL: 'warn' })
  try {
    const [here, there] = [await openApi(tollgate), await openApi(elsewhere)]
    const rig: Rig = { tollgate, watch, here, elsewhere: there, perSecond, rate, rounds }
    const seconds = (rounds * SLICES.length * SLICE_MS) / 1_000
    console.log(
      `  ${rate} calls/s and ${perSecond} requests/s, ${seconds} s each; first turn: warm-up`,
    )
    await takeTurn(rig)
    const taken: Turn[] = []
    while (taken.length < number('turns', 5)) taken.push(await takeTurn(rig))
    report(taken)
    here.close()
    there.close()
  } finally {
    await tollgate.stop()
    await elsewhere.stop()
    await node.stop()
    watch.close()
  }
}

interface Rig {
  readonly tollgate: TollgateProcess
  readonly watch: LoopWatch
  readonly here: HttpLoad
  /** Another program, without calls. */
  readonly elsewhere: HttpLoad
  readonly perSecond: number
  readonly rate: number
  readonly rounds: number
}

interface Turn {
  /** CPU µs. */
  readonly perRequest: number
  readonly perCall: number
  readonly added: number
  /** When the requests go elsewhere. */
  readonly addedElsewhere: number
}

async function takeTurn(rig: Rig): Promise<Turn> {
  const { rate, rounds, tollgate, watch } = rig
  const quiet = await slices(rig)
  // The first and the last second of the calls are in no slice.
  const seconds = (rounds * SLICES.length * SLICE_MS) / 1_000 + 3
  const calls = placeCalls(tollgate.sipPort, rate, Math.ceil(rate * seconds), caller)
  await rest(1_000)
  await watch.lagOf(tollgate)
  const busy = await slices(rig)
  const lag = await watch.lagOf(tollgate)
  const turn = {
    perRequest: (quiet.here - quiet.nowhere) / rig.perSecond,
    perCall: (busy.nowhere - quiet.nowhere) / rate,
    added: (busy.here - busy.nowhere - (quiet.here - quiet.nowhere)) / rate,
    addedElsewhere: (busy.elsewhere - busy.nowhere - (quiet.elsewhere - quiet.nowhere)) / rate,
  }
  printTurn(turn, quiet.nowhere, await calls, lag)
  return turn
}

/** CPU µs a second of the program that has the calls, by where the requests go. */
type Slices = Readonly<Record<(typeof SLICES)[number], number>>

async function slices(rig: Rig): Promise<Slices> {
  const sum = () => ({ micros: 0, seconds: 0 })
  const sums = { nowhere: sum(), here: sum(), elsewhere: sum() }
  for (let round = 0; round < rig.rounds; round += 1)
    for (const where of SLICES) {
      const before = { cpu: cpuMicros([rig.tollgate.pid]), at: performance.now() }
      if (where === 'nowhere') await rest(SLICE_MS)
      else await rig[where].paced(rig.perSecond, SLICE_MS)
      sums[where].micros += cpuMicros([rig.tollgate.pid]) - before.cpu
      sums[where].seconds += (performance.now() - before.at) / 1_000
    }
  const perSecond = ({ micros, seconds }: ReturnType<typeof sum>) => micros / seconds
  return {
    nowhere: perSecond(sums.nowhere),
    here: perSecond(sums.here),
    elsewhere: perSecond(sums.elsewhere),
  }
}

const rest = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

function printTurn(
  { perRequest, perCall, added, addedElsewhere }: Turn,
  idle: number,
  { succeeded, calls, setupP50Ms, setupP99Ms }: LoadResult,
  { p99Ms, maxMs }: LoopLag,
): void {
  console.log(
    `  idle ${(idle / 10_000).toFixed(1)} % of a core; a request ${perRequest.toFixed(1)} µs, a call ${perCall.toFixed(0)} µs, ` +
      `beside requests ${added.toFixed(0)} more, beside those to another program ${addedElsewhere.toFixed(0)} more; ${succeeded} of ${calls} calls, set-up p50 ${setupP50Ms.toFixed(1)}, ` +
      `p99 ${setupP99Ms.toFixed(1)} ms; loop lag p99 ${p99Ms.toFixed(1)}, longest ${maxMs.toFixed(1)} ms`,
  )
}

function report(turns: readonly Turn[]): void {
  const added = turns.map((turn) => turn.added)
  const elsewhere = turns.map((turn) => turn.addedElsewhere)
  const isMore = median(added) > MOST_ADDED_MICROS
  console.log(
    `  a request ${spread(
      turns.map(({ perRequest }) => perRequest),
      1,
    )} µs, ` +
      `a call ${spread(turns.map(({ perCall }) => perCall))} µs\n` +
      `  added to a call: ${spread(added)} µs CPU${isMore ? `  ← more than ${MOST_ADDED_MICROS}` : ''}\n` +
      `  when the requests go to another program: ${spread(elsewhere)} µs; the API's own part: ` +
      `${spread(turns.map((turn) => turn.added - turn.addedElsewhere))} µs`,
  )
}

const openApi = async (program: TollgateProcess): Promise<HttpLoad> =>
  HttpLoad.open(program.apiPort, '/api/v1/health', await makeKeys(program))

/** One per connection: no request shall meet the limit of its key. */
async function makeKeys(tollgate: TollgateProcess): Promise<readonly string[]> {
  const token = await tollgate.createKey('--name', 'root', '--scopes', '*')
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
