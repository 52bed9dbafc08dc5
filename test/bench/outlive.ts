/**
 * Calls that outlive the process. SIPp holds calls while others come and go; the process is killed
 * with SIGKILL at random moments and started again at once. After the last kill each held call must
 * still be put on hold by either side and be hung up, and its record must have its real duration.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { seededRandom } from '../support/seeded-random.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import type { Leaving } from '../support/unattended-calls.ts'
import { eventually } from '../support/waiting.ts'
import { rowsOfAbsences } from './load/away.ts'
import { percentile } from './load/figures.ts'
import { LoggedCalls, type Notes } from './load/logged-calls.ts'
import { caller, oneCustomer } from './load/one-customer.ts'
import { numbersOf } from './load/options.ts'
import { type Row, reportRows } from './load/rows.ts'
import { startNode } from './load/sipp-load.ts'

export const describe =
  'live calls over kill -9: time to serve, all go on, each billed once; parties that hang up while the process is away; ' +
  'arguments: calls=1000 rate=200 kills=20 seed=1 away=60'

/** By the last digit the scenarios know who hangs up. */
const hungUpByCaller = '18005551211'
const hungUpByCallee = '18005551212'

const MICROS_PER_SECOND = 10_000
const MOST_BYTES = 4_096
/** The same beside the line of what has changed since the answer (D535). */
const MOST_BYTES_CHANGED = 5_632
/** The rate of held calls, per second, when they are begun and when they are ended. */
const HELD_RATE = 200
const ENDS_PER_SECOND = 100
/** SIPp repeats a request for 32 s. */
const STRAGGLERS_MS = 40_000

/** Half of the calls go on. */
const leavingBesideLasting: readonly Leaving[] = [
  'nobody',
  'both',
  'nobody',
  'callee',
  'nobody',
  'silently',
]

/** `kills=0`: only what becomes of calls whose parties hang up while no process is there. */
export async function run(
  words: readonly string[] = [],
  ways: readonly Leaving[] = leavingBesideLasting,
): Promise<void> {
  const options = numbersOf(words, { calls: 1_000, rate: 200, kills: 20, seed: 1, away: 60 })
  const rows = options.kills > 0 ? await rowsUnderLoad(options) : []
  const absences = await rowsOfAbsences({ calls: options.away, ways, end: 'kill' })
  reportRows([...rows, ...absences])
}

async function rowsUnderLoad(
  options: Readonly<Record<'calls' | 'rate' | 'kills' | 'seed', number>>,
): Promise<readonly Row[]> {
  const node = await startNode('held-node.xml')
  const seed = oneCustomer([node.port], 4, '0.60')
  const tollgate = await TollgateProcess.start(seed, { LOG_LEVEL: 'warn' })
  const started: LoggedCalls[] = []
  const start = async (scenario: string, called: string, name: string, rate: number, calls = 0) => {
    const plan = { caller, called, name, rate, calls }
    started.push(await LoggedCalls.start(scenario, tollgate.sipPort, plan))
  }
  try {
    const rate = Math.min(HELD_RATE, options.rate) / 2
    const half = Math.ceil(options.calls / 2)
    if (half > 0) {
      await start('held-caller.xml', hungUpByCaller, 'ours', rate, half)
      await start('held-caller.xml', hungUpByCallee, 'theirs', rate, half)
    }
    const held = [...started]
    await eventually(
      () => {
        const answered = [...notesOf(held).values()].filter((notes) => notes.has('answered'))
        if (answered.length < 2 * half) throw new Error(`${answered.length} calls are answered`)
      },
      (half / rate) * 1_000 + 30_000,
    )
    await start('talking-caller.xml', hungUpByCaller, 'beside', options.rate)
    await pause(2_000)
    const kills = await killAndRestart(tollgate, options)
    const bytes = journalBytes(tollgate)
    const beside = started.slice(held.length)
    await Promise.all(beside.map((calls) => calls.finish(STRAGGLERS_MS)))
    await end(held)
    const records = await recordsOf(tollgate)
    const limitMs = options.calls > 1_000 ? 4_000 : 2_000
    return [
      ...rowsOfService(
        kills.map(({ at, servedAt }) => servedAt - at),
        limitMs,
        bytes,
      ),
      ...rowsOfCalls(notesOf(held), notesOf(beside), records, {
        kills,
        clockOffsetMs: beside[0]?.clockOffsetMs ?? 0,
      }),
      ...rowsOfBooks(tollgate, records),
    ]
  } finally {
    for (const calls of started) await calls.stop()
    await tollgate.stop()
    await node.stop()
  }
}

const notesOf = (parts: readonly LoggedCalls[]): ReadonlyMap<string, Notes> =>
  new Map(parts.flatMap((calls) => [...calls.notes()]))

/** Times by `performance.now()`; `servedAt`: OPTIONS was answered. */
interface Kill {
  readonly at: number
  readonly servedAt: number
}

async function killAndRestart(
  tollgate: TollgateProcess,
  { kills, seed }: { readonly kills: number; readonly seed: number },
): Promise<readonly Kill[]> {
  const random = seededRandom(seed)
  const done: Kill[] = []
  for (let kill = 1; kill <= kills; kill += 1) {
    await pause(500 + random() * 2_500)
    const at = performance.now()
    await tollgate.kill()
    const [answered] = await Promise.all([firstAnswer(tollgate.sipPort), tollgate.restart()])
    done.push({ at, servedAt: answered })
  }
  await pause(1_000)
  return done
}

/** Sends a request without a body to this port of 127.0.0.1. */
async function openAsker() {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const ask = (method: string, port: number, id: string): void => {
    const text = [
      `${method} sip:127.0.0.1:${port} SIP/2.0`,
      `Via: SIP/2.0/UDP 127.0.0.1:${socket.address().port};branch=z9hG4bK-${id}`,
      'Max-Forwards: 70',
      `From: <sip:bench@127.0.0.1>;tag=${id}`,
      'To: <sip:127.0.0.1>',
      `Call-ID: ${id}`,
      `CSeq: 1 ${method}`,
      'Content-Length: 0',
    ]
    socket.send(`${text.join('\r\n')}\r\n\r\n`, port, '127.0.0.1')
  }
  return { socket, ask }
}

/** Asks every 10 ms with OPTIONS; when the first answer came. */
async function firstAnswer(targetPort: number): Promise<number> {
  const { socket, ask } = await openAsker()
  let asked = 0
  const asking = setInterval(() => ask('OPTIONS', targetPort, `ready-${(asked += 1)}`), 10)
  await once(socket, 'message')
  const now = performance.now()
  clearInterval(asking)
  socket.close()
  return now
}

/** Has each held call put on hold by both sides and hung up. */
async function end(held: readonly LoggedCalls[]): Promise<void> {
  const { socket, ask } = await openAsker()
  for (const calls of held)
    for (const id of calls.notes().keys()) {
      ask('MESSAGE', calls.port, id)
      await pause(1_000 / ENDS_PER_SECOND)
    }
  socket.close()
  await Promise.all(held.map((calls) => calls.over(STRAGGLERS_MS)))
}

interface StoredCall {
  readonly id: string
  readonly records: number
  readonly billsec: number
  readonly recovered: number
}

/** The stored answered calls by Call-ID, once the last of them is stored. */
async function recordsOf(tollgate: TollgateProcess): Promise<ReadonlyMap<string, StoredCall>> {
  await eventually(() => {
    if (tollgate.countUnstored() > 0) throw new Error('calls wait to be stored')
  }, 5_000).catch(() => undefined)
  const rows = tollgate.query<StoredCall>(
    `SELECT call_id AS id, count(*) AS records, sum(billsec) AS billsec, sum(is_recovered) AS recovered
     FROM cdr WHERE disposition = 'ANSWERED' GROUP BY 1`,
  )
  return new Map(rows.map((row) => [row.id, row]))
}

/** Bytes of the lines that count of an answered call that the journal has. */
interface JournalBytes {
  readonly answered: number
  readonly saved: number
  /** 0: the whole state was saved last. */
  readonly change: number
}

function journalBytes(tollgate: TollgateProcess): readonly JournalBytes[] {
  const calls = new Map<string, JournalBytes>()
  for (const line of tollgate.journal()) {
    const [, kind = '', callUuid = ''] =
      /^\S+ \{"(\w+)":.*?"([\da-f]{8}-[\da-f-]{27})"/.exec(line) ?? []
    const known = calls.get(callUuid) ?? { answered: 0, saved: 0, change: 0 }
    const bytes = line.length + 1
    if (kind === 'answered') calls.set(callUuid, { ...known, answered: bytes })
    else if (kind === 'saved' && /^[^\t]*"isChange":true/.test(line))
      calls.set(callUuid, { ...known, change: bytes })
    else if (kind === 'saved') calls.set(callUuid, { ...known, saved: bytes, change: 0 })
    else if (kind === 'ended' || kind === 'gone') calls.delete(callUuid)
  }
  return [...calls.values()]
}

function rowsOfService(
  servingMs: readonly number[],
  limitMs: number,
  lines: readonly JournalBytes[],
): readonly Row[] {
  const [p50, p99] = [0.5, 0.99].map((part) => percentile(servingMs, part))
  const rowOfLines = (what: string, calls: readonly JournalBytes[], limit: number): Row => {
    const bytes = calls.map(({ answered, saved, change }) => answered + saved + change)
    const most = Math.max(0, ...bytes)
    const text = bytes.length > 0 ? `p50 ${percentile(bytes, 0.5)}, most ${most}` : 'none'
    return [`${what}, at most ${limit} bytes`, text, most <= limit]
  }
  return [
    [
      `kill -9 to OPTIONS answered, p99 at most ${limitMs} ms`,
      `p50 ${p50?.toFixed(0)}, p99 ${p99?.toFixed(0)} ms`,
      (p99 ?? 0) <= limitMs,
    ],
    rowOfLines(
      'journal of a live call',
      lines.filter(({ change }) => change === 0),
      MOST_BYTES,
    ),
    rowOfLines(
      'with what has changed since its answer',
      lines.filter(({ change }) => change > 0),
      MOST_BYTES_CHANGED,
    ),
  ]
}

function rowsOfCalls(
  held: ReadonlyMap<string, Notes>,
  beside: ReadonlyMap<string, Notes>,
  records: ReadonlyMap<string, StoredCall>,
  crashes: Crashes,
): readonly Row[] {
  const all = (
    what: string,
    calls: readonly (readonly [string, Notes])[],
    holds: (call: readonly [string, Notes]) => boolean,
  ): Row => {
    const wrong = calls.filter((call) => !holds(call))
    const text = wrong.slice(0, 5).map(([id, notes]) => `${id}: ${textOf(notes, records.get(id))}`)
    const counted = `${calls.length - wrong.length} of ${calls.length}`
    return [what, [counted, ...text].join('\n    '), wrong.length === 0]
  }
  const has = (what: string) => (call: readonly [string, Notes]) => call[1].has(what)
  const of = (name: string) => [...held].filter(([id]) => id.startsWith(name))
  const answered = [...beside].filter(has('answered'))
  return [
    all('held calls: re-INVITE of the caller', [...held], has('caller-held')),
    all('held calls: re-INVITE of the callee', [...held], has('callee-held')),
    all('held calls: BYE of the caller', of('ours'), has('caller-ended')),
    all('held calls: BYE of the callee', of('theirs'), has('callee-ended')),
    all('held calls: billed once, within 1 s', [...held], isBilled(records)),
    // 481: the end was in the journal already, and the crash has taken the 200 along.
    all('calls beside, answered: BYE gets 200 or 481', answered, ([, notes]) =>
      ['caller-ended', 'known-as-ended'].some((what) => notes.has(what)),
    ),
    all('calls beside, answered: billed once, within 1 s', answered, isBilled(records, crashes)),
  ]
}

/** The things that the parties saw of a call, in ms of their clock, and what is stored. */
const textOf = (notes: Notes, stored: StoredCall | undefined): string =>
  `${[...notes].map(([what, at]) => `${what} ${at}`).join(', ')}; ${JSON.stringify(stored ?? {})}`

/**
 * Once, and for the time that both sides talked. Where the process was away when a call was
 * answered or hung up, one side saw it later than the other: anything in between is right.
 */
const isBilled =
  (records: ReadonlyMap<string, StoredCall>, crashes?: Crashes) =>
  ([id, notes]: readonly [string, Notes]): boolean => {
    const row = records.get(id)
    const ends = ['caller-ended', 'callee-ended', 'known-as-ended']
    const [ended] = ends.flatMap((what) => notes.get(what) ?? [])
    const answered = notes.get('answered')
    if (row?.records !== 1 || ended === undefined || answered === undefined) return false
    const bye = notes.get('bye') ?? ended
    const least = (crashes === undefined ? bye : surelyHeard(answered, bye, crashes)) - answered
    const most = (ended - (notes.get('placed') ?? answered)) / 1_000
    return row.billsec >= least / 1_000 - 1 && row.billsec <= most + 1
  }

interface Crashes {
  readonly kills: readonly Kill[]
  /** The offset of the clock of the calls' notes. */
  readonly clockOffsetMs: number
}

/**
 * A BYE that comes so soon after a start may be the copy of an earlier one, and parties are asked
 * meanwhile (D322).
 */
const DOUBT_MS = 4_000
/** The journal hears of the process every second. */
const BEAT_MS = 1_000

/**
 * A call that is hung up while the process is away, or before its parties are heard, ends when it
 * was seen last.
 */
function surelyHeard(answered: number, bye: number, { kills, clockOffsetMs }: Crashes): number {
  const isNear = kills.some(({ at, servedAt }) => {
    const hungUp = bye + clockOffsetMs
    return hungUp >= at && hungUp <= servedAt + DOUBT_MS
  })
  const cut = kills.find(({ at }) => at >= answered + clockOffsetMs)
  if (!isNear || cut === undefined) return bye
  return Math.min(bye, cut.at - clockOffsetMs - BEAT_MS)
}

function rowsOfBooks(
  tollgate: TollgateProcess,
  records: ReadonlyMap<string, StoredCall>,
): readonly Row[] {
  const recovered = [...records.values()].filter((row) => row.recovered > 0).length
  const left = tollgate.countUnstored()
  const faults = tollgate.query(booksProblems).length
  const { balance, ledger } = tollgate.wallet('load')
  return [
    ['answered calls closed as recovered', String(recovered), recovered === 0],
    ['calls left in the journal', String(left), left === 0],
    ['balance = ledger', `${balance / 1e6} = ${ledger / 1e6}`, balance === ledger],
    ['records and debits that do not fit', String(faults), faults === 0],
  ]
}

/** One row for everything in the books that does not add up. */
const booksProblems = `
  SELECT c.call_uuid FROM cdr c WHERE c.cost_micros > 0 AND 1 <> (
    SELECT count(*) FROM ledger_entry l
    WHERE l.kind = 'debit' AND l.ref = c.call_uuid AND l.amount_micros = -c.cost_micros)
  UNION ALL
  SELECT l.ref FROM ledger_entry l
  WHERE l.kind = 'debit' AND NOT EXISTS (SELECT 1 FROM cdr c WHERE c.call_uuid = l.ref)
  UNION ALL
  SELECT c.call_uuid FROM cdr c WHERE c.cost_micros <> c.billsec * ${MICROS_PER_SECOND}`
