/**
 * The cost of anchoring. Two programs have the same steady load at the same time: one without
 * RTPENGINE, and one with a real rtpengine, whose calls are anchored in every second slice (a rule
 * of their set is changed between slices, so that it is one process that is compared with itself).
 * CPU is what the scheduler counts. A slice of the one is compared with the same slice of the
 * other, which was on the same machine in the same moment, and a slice with anchored calls with its
 * neighbour. Calls are counted as the programs have: a slice in which they took fewer than were
 * placed says nothing, and is left out. The relay is another process: its CPU is told, and is in no
 * difference.
 *
 * An anchored call takes more by a profile of one program alone at 250/s that changes between both
 * (156 µs of its main thread, 1,051 beside 895):
 * - 116 are the three sends to the relay, 39 each, where one to a socket that nobody waits at takes
 *   3: the sender wakes the relay's thread on an idle processor
 * - 25 are bencode, of which 14 read the statistics in the answer to `delete`
 * - 50 are offers, sessions, descriptions and their digests
 * At 2 x 200/s on two processors, quiet, after 24 s of anchored calls, the difference is 254 (198
 * to 420) between neighbouring slices, and 250 (220 to 520) beside the program without relays, of
 * which 34 are there for a call that bypasses the relay, too. By thread it is 190 of the main one,
 * which wakes up 1.2 times more, and 27 of V8's helpers (71 on a busy machine after 5 s: most of it
 * compiles, some frees the buffers of answers). The threads of libuv take nothing more.
 *
 * Tried without gain:
 * - figures of bencode read with local variables in place of private fields: 5.7 µs an answer to
 *   `delete` beside 5.7
 * - FNV in place of SHA-1 for the digests of descriptions: 0.96 µs beside 0.99 for two
 * - requests in a TCP connection (`--listen-tcp-ng`) in place of datagrams, with the reads, on a
 *   busy machine: 42 to 47 µs of CPU a request beside 43 to 86; ten in one write 13 to 22 each,
 *   beside 16 to 22 as ten datagrams of one turn, as which `delete` is sent already
 * - flags encoded once: an offer with its flags and bytes takes 1.2 µs where the code is warm, the
 *   flags and the rest of its entries 0.3 of them, so nothing there is worth a cache
 */
import { RtpEngine } from '../support/rtpengine.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { median, spread } from './load/figures.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { numbersOf } from './load/options.ts'
import { exactCpuMicros } from './load/process-cpu.ts'
import { placeCalls, startNode } from './load/sipp-load.ts'
import { type ThreadUse, threadsOf } from './load/threads.ts'

export const describe =
  'CPU per call that is anchored at a relay, beside the same program without RTPENGINE (at most 150 µs more); ' +
  'arguments: rate=200 warmup=48 rounds=10 starts=2'

const SLICE_MS = 2_000
/** The time that a change of the rule, and the calls of the slice before, may take. */
const PAUSE_MS = 400
/** Costs that grow steadily are in both alike. */
const kinds = ['anchor', 'bypass', 'bypass', 'anchor'] as const
const MOST_MICROS = 150
/** The part of the placed calls that must have been taken. */
const LEAST_PART = 0.95

const usual = { rate: 200, warmup: 48, rounds: 10, starts: 2 }

/** CPU µs per call. */
interface Slice {
  readonly kind: (typeof kinds)[number]
  readonly plain: number
  readonly relayed: number
  readonly relay: number
  /** What the threads of the program with relays have used, per call. */
  readonly threads: ReadonlyMap<string, ThreadUse>
}

export async function run(words: readonly string[] = []): Promise<void> {
  const plan = numbersOf(words, usual)
  const taken: Slice[] = []
  // The code that V8 makes of the same source differs from start to start.
  for (let start = 0; start < plan.starts; start += 1) {
    const slices = await inOneStart(plan)
    report(slices)
    taken.push(...slices)
  }
  console.log('  all starts:')
  const more = report(taken)
  if (more > MOST_MICROS) console.log(`  ← more than ${MOST_MICROS}`)
}

async function inOneStart(plan: typeof usual): Promise<readonly Slice[]> {
  const engine = await RtpEngine.start({ words: ['--log-level=3'], shares: 8 })
  const nodes = await Promise.all([startNode(), startNode()])
  const seed = oneCustomer(nodes.map(({ port }) => port))
  const [plain, relayed] = await Promise.all(
    [{}, { RTPENGINE: engine.setting }].map((more) =>
      TollgateProcess.start(seed, { LOG_LEVEL: 'warn', ...more }),
    ),
  )
  if (plain === undefined || relayed === undefined) throw new Error('nothing was started')
  try {
    const slices = await slicesOf({ plain, relayed, engine }, plan)
    console.log(`  ${(await engine.sessions()).length} sessions are left at the relay`)
    return slices
  } finally {
    await Promise.all([plain.stop(), relayed.stop(), ...nodes.map((node) => node.stop())])
    await engine.stop()
  }
}

interface Rig {
  readonly plain: TollgateProcess
  readonly relayed: TollgateProcess
  readonly engine: RtpEngine
}

async function slicesOf(
  { plain, relayed, engine }: Rig,
  { rate, warmup, rounds }: typeof usual,
): Promise<readonly Slice[]> {
  const programs = await Promise.all([plain, relayed].map(apiOf))
  const [, anchoring] = programs
  const count = rounds * kinds.length
  const seconds = warmup + (count * (SLICE_MS + 2 * PAUSE_MS)) / 1_000
  const load = Promise.all(
    [plain, relayed].map(({ sipPort }) =>
      placeCalls(sipPort, rate, Math.ceil(rate * seconds), caller),
    ),
  )
  for (const kind of kinds) {
    await anchoring?.setMedia(kind)
    await rest((warmup * 1_000) / kinds.length)
  }
  const slices: Slice[] = []
  const pids = [plain.pid, relayed.pid, engine.pid]
  for (let index = 0; index < count; index += 1) {
    const kind = kinds[index % kinds.length] ?? 'bypass'
    await anchoring?.setMedia(kind)
    await rest(PAUSE_MS)
    const answered = await Promise.all(programs.map((program) => program.answered()))
    const [before, threads] = [pids.map(exactCpuMicros), threadsOf(relayed.pid)]
    await rest(SLICE_MS)
    const spent = pids.map((pid, at) => exactCpuMicros(pid) - (before[at] ?? 0))
    const used = threadsOf(relayed.pid)
    const now = await Promise.all(programs.map((program) => program.answered()))
    const [few = 0, many = 0] = now.map((all, at) => all - (answered[at] ?? 0))
    const [own = 0, other = 0, relay = 0] = spent
    if (Math.min(few, many) >= LEAST_PART * rate * (SLICE_MS / 1_000))
      slices.push({
        kind,
        plain: own / few,
        relayed: other / many,
        relay: relay / many,
        threads: perCall(threads, used, many),
      })
  }
  for (const { succeeded, calls } of await load)
    if (succeeded < calls) console.log(`  ${succeeded} of ${calls} calls`)
  return slices
}

/** The median of what an anchored call takes more than one of a program without relays. */
function report(slices: readonly Slice[]): number {
  const of = (kind: Slice['kind']) => slices.filter((slice) => slice.kind === kind)
  const beside = (kind: Slice['kind']) => of(kind).map(({ plain, relayed }) => relayed - plain)
  const [anchored, passed] = [beside('anchor'), beside('bypass')]
  const apart = slices.flatMap(({ kind, relayed, plain }, index) => {
    const next = slices[index + 1]
    if (next === undefined || next.kind === kind) return []
    const more = relayed - plain - (next.relayed - next.plain)
    return [kind === 'anchor' ? more : -more]
  })
  console.log(
    `  ${slices.length} slices: without RTPENGINE ${spread(slices.map(({ plain }) => plain))} µs per call; with it, ` +
      `a call that bypasses the relay ${spread(passed)} more, one that is anchored ${spread(anchored)} more, ` +
      `neighbouring slices apart ${spread(apart)}; the relay ${spread(of('anchor').map(({ relay }) => relay))}`,
  )
  for (const line of byThread(of('anchor'), of('bypass'))) console.log(`    ${line}`)
  return median(anchored)
}

function perCall(
  before: ReadonlyMap<string, ThreadUse>,
  after: ReadonlyMap<string, ThreadUse>,
  calls: number,
): ReadonlyMap<string, ThreadUse> {
  const uses = [...after].map(([name, { cpuMicros, wakeUps }]) => {
    const earlier = before.get(name) ?? { cpuMicros: 0, wakeUps: 0 }
    return [
      name,
      {
        cpuMicros: (cpuMicros - earlier.cpuMicros) / calls,
        wakeUps: (wakeUps - earlier.wakeUps) / calls,
      },
    ] as const
  })
  return new Map(uses)
}

/** The medians of each thread, of anchored calls beside those that bypass the relay. */
function byThread(anchored: readonly Slice[], passed: readonly Slice[]): readonly string[] {
  const names = new Set(anchored.flatMap(({ threads }) => [...threads.keys()]))
  return [...names].map((name) => {
    const of = (slices: readonly Slice[], what: keyof ThreadUse) =>
      median(slices.map(({ threads }) => threads.get(name)?.[what] ?? 0))
    const [cpu, awake] = [of(anchored, 'cpuMicros'), of(anchored, 'wakeUps')]
    const [less, before] = [of(passed, 'cpuMicros'), of(passed, 'wakeUps')]
    return (
      `${name}: ${cpu.toFixed(0)} µs and ${awake.toFixed(2)} wake-ups a call that is anchored, ` +
      `${less.toFixed(0)} and ${before.toFixed(2)} one that bypasses the relay`
    )
  })
}

/** The requests of the bench to a program. */
async function apiOf(tollgate: TollgateProcess) {
  const token = await tollgate.createKey('--name', 'bench', '--scopes', '*')
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const at = `http://127.0.0.1:${tollgate.apiPort}`
  return {
    /** Whether the calls of the set are anchored. */
    setMedia: async (media: string): Promise<void> => {
      const body = JSON.stringify({ media })
      const change = { method: 'PATCH', headers, body }
      const { status } = await fetch(`${at}/api/v1/dispatcher/1`, change)
      if (status !== 200) throw new Error(`the rule was not changed: ${status}`)
    },
    /** Calls that were answered and have ended. */
    answered: async (): Promise<number> => {
      const text = await (await fetch(`${at}/metrics`, { headers })).text()
      return Number(/^tollgate_calls_total{disposition="ANSWERED"} (\d+)/m.exec(text)?.[1] ?? NaN)
    },
  }
}

const rest = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
