/**
 * Calls that outlive the process. SIPp holds calls while others come and go; the process is killed with
 * SIGKILL at random moments and started again at once. After the last kill each held call must still be put
 * on hold by either side and be hung up, and its record must have its real duration.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { seededRandom } from '../support/seeded-random.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually } from '../support/waiting.ts'
import { LoggedCalls } from './load/logged-calls.ts'
import { startNode } from './load/sipp-load.ts'

export const describe =
  'live calls over kill -9: time to serve, all go on, each billed once; arguments: calls=1000 rate=200 kills=20 seed=1'

const caller = '15550001111'
/** By the last digit the scenarios know who hangs up. */
const hungUpByCaller = '18005551211'
const hungUpByCallee = '18005551212'

const bytesPerCall = 4_096
/** Of held calls, per second, when they are begun and when they are ended. */
const maxRateOfHeld = 200
const endsPerSecond = 100
/** SIPp repeats a request for 32 s. */
const stragglersMs = 40_000

interface Options {
  readonly calls: number
  readonly rate: number
  readonly kills: number
  readonly seed: number
}

export async function run(words: readonly string[] = []): Promise<void> {
  const given = new Map(words.map((word) => word.split('=') as [string, string | undefined]))
  const number = (name: string, unlessGiven: number) => Number(given.get(name) ?? unlessGiven)
  const options = {
    calls: number('calls', 1_000),
    rate: number('rate', 200),
    kills: number('kills', 20),
    seed: number('seed', 1),
  }
  const node = await startNode('held-node.xml')
  const tollgate = await TollgateProcess.start(seedFor(node.port), { LOG_LEVEL: 'warn' })
  const started: LoggedCalls[] = []
  const start = async (...how: Parameters<typeof LoggedCalls.start>) => {
    const calls = await LoggedCalls.start(...how)
    started.push(calls)
    return calls
  }
  try {
    const held = await hold(tollgate, options, start)
    const beside = await start('talking-caller.xml', tollgate.sipPort, {
      caller,
      called: hungUpByCaller,
      rate: options.rate,
      name: 'beside',
    })
    await pause(2_000)
    const servingMs = await killAndRestart(tollgate, options)
    const bytes = journalBytes(tollgate)
    await beside.finish(stragglersMs)
    await end(held)
    const records = await recordsOf(tollgate)
    report({
      tollgate,
      options,
      servingMs,
      bytes,
      held: notesOf(held),
      beside: beside.notes(),
      records,
    })
  } finally {
    for (const calls of started) await calls.stop()
    await tollgate.stop()
    await node.stop()
  }
}

type Start = typeof LoggedCalls.start
type CallNotes = ReturnType<LoggedCalls['notes']>

async function hold(
  { sipPort }: TollgateProcess,
  { calls, rate }: Options,
  start: Start,
): Promise<readonly LoggedCalls[]> {
  const half = {
    caller,
    calls: Math.ceil(calls / 2),
    rate: Math.ceil(Math.min(maxRateOfHeld, rate) / 2),
  }
  const both = [
    await start('held-caller.xml', sipPort, { ...half, called: hungUpByCaller, name: 'ours' }),
    await start('held-caller.xml', sipPort, { ...half, called: hungUpByCallee, name: 'theirs' }),
  ]
  await eventually(
    () => {
      const answered = [...notesOf(both).values()].filter((notes) => notes.has('answered')).length
      if (answered < 2 * half.calls) throw new Error(`${answered} of ${calls} calls are answered`)
    },
    (half.calls / half.rate) * 1_000 + 30_000,
  )
  return both
}

const notesOf = (parts: readonly LoggedCalls[]): CallNotes =>
  new Map(parts.flatMap((calls) => [...calls.notes()]))

/** Of each kill: ms until OPTIONS was answered. */
async function killAndRestart(
  tollgate: TollgateProcess,
  { kills, seed }: Options,
): Promise<readonly number[]> {
  const random = seededRandom(seed)
  const servingMs: number[] = []
  for (let kill = 1; kill <= kills; kill += 1) {
    await pause(500 + random() * 2_500)
    const at = performance.now()
    await tollgate.kill()
    const [answered] = await Promise.all([firstAnswer(tollgate.sipPort), tollgate.restart()])
    servingMs.push(answered - at)
  }
  await pause(1_000)
  return servingMs
}

/** Asks every 10 ms with OPTIONS; when the first answer came. */
async function firstAnswer(targetPort: number): Promise<number> {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const { port } = socket.address()
  let asked = 0
  const asking = setInterval(() => {
    asked += 1
    const text = [
      `OPTIONS sip:127.0.0.1:${targetPort} SIP/2.0`,
      `Via: SIP/2.0/UDP 127.0.0.1:${port};branch=z9hG4bK-serving-${port}-${asked}`,
      'Max-Forwards: 70',
      `From: <sip:bench@127.0.0.1>;tag=${port}`,
      `To: <sip:127.0.0.1:${targetPort}>`,
      `Call-ID: serving-${port}-${asked}`,
      'CSeq: 1 OPTIONS',
      'Content-Length: 0',
      '',
      '',
    ]
    socket.send(text.join('\r\n'), targetPort, '127.0.0.1')
  }, 10)
  try {
    await once(socket, 'message')
    return performance.now()
  } finally {
    clearInterval(asking)
    socket.close()
  }
}

/** Has each held call put on hold by both sides and hung up. */
async function end(held: readonly LoggedCalls[]): Promise<void> {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const waiting = held.flatMap((calls) => [...calls.notes().keys()].map((id) => ({ calls, id })))
  for (const { calls, id } of waiting) {
    const text = [
      `MESSAGE sip:127.0.0.1:${calls.port} SIP/2.0`,
      `Via: SIP/2.0/UDP 127.0.0.1:${socket.address().port};branch=z9hG4bK-${id}`,
      'Max-Forwards: 70',
      `From: <sip:bench@127.0.0.1>;tag=${id}`,
      `To: <sip:127.0.0.1>`,
      `Call-ID: ${id}`,
      'CSeq: 1 MESSAGE',
      'Content-Length: 0',
      '',
      '',
    ]
    socket.send(text.join('\r\n'), calls.port, '127.0.0.1')
    await pause(1_000 / endsPerSecond)
  }
  socket.close()
  await Promise.all(held.map((calls) => calls.over(stragglersMs)))
}

interface StoredCall {
  readonly id: string
  readonly records: number
  readonly billsec: number
  readonly recovered: number
}

/** By Call-ID, what is stored of answered calls, when the last of them is. */
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

/** Bytes of the lines that count of each answered call that the journal has, in rising order. */
function journalBytes(tollgate: TollgateProcess): readonly number[] {
  const calls = new Map<string, Record<string, number>>()
  for (const line of tollgate.journal()) {
    const [, kind = '', callUuid = ''] =
      /^\S+ \{"(\w+)":.*?"([\da-f]{8}-[\da-f-]{27})"/.exec(line) ?? []
    if (kind === 'answered' || kind === 'saved')
      calls.set(callUuid, { ...calls.get(callUuid), [kind]: line.length + 1 })
    else if (kind === 'ended' || kind === 'gone') calls.delete(callUuid)
  }
  return [...calls.values()]
    .map(({ answered = 0, saved = 0 }) => answered + saved)
    .toSorted((one, other) => one - other)
}

interface Outcome {
  readonly tollgate: TollgateProcess
  readonly options: Options
  readonly servingMs: readonly number[]
  readonly bytes: readonly number[]
  readonly held: CallNotes
  readonly beside: CallNotes
  readonly records: ReadonlyMap<string, StoredCall>
}

/** What is measured, what came of it, what is wanted, and whether that holds. */
type Row = readonly [what: string, seen: string, wanted: string, isRight: boolean]

function report(outcome: Outcome): void {
  const { calls, rate, kills, seed } = outcome.options
  console.log(`  ${calls} live calls, ${rate} new ones a second, ${kills} kills, seed ${seed}`)
  const rows = [...rowsOfService(outcome), ...rowsOfHeld(outcome), ...rowsOfBooks(outcome)]
  for (const [what, seen, wanted, isRight] of rows)
    console.log(
      `  ${what.padEnd(50)}${seen.padEnd(34)}${wanted.padEnd(18)}${isRight ? 'ok' : '← WRONG'}`,
    )
  for (const line of wronglyBilled(outcome).slice(0, 10)) console.log(`  ${line}`)
  if (rows.some(([, , , isRight]) => !isRight)) process.exitCode = 1
}

function rowsOfService({ options, servingMs, bytes }: Outcome): readonly Row[] {
  const sorted = servingMs.toSorted((one, other) => one - other)
  const limitMs = options.calls > 1_000 ? 4_000 : 2_000
  const [p50, p99] = [percentile(sorted, 0.5), percentile(sorted, 0.99)]
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(2)} s`
  const kilobytes = (count: number) => `${(count / 1_024).toFixed(1)} kB`
  const most = bytes.at(-1) ?? 0
  return [
    [
      'kill -9 to OPTIONS answered',
      `p50 ${seconds(p50)}, p99 ${seconds(p99)}`,
      `<= ${seconds(limitMs)}`,
      p99 <= limitMs,
    ],
    [
      'journal for each of the live calls',
      `p50 ${kilobytes(percentile(bytes, 0.5))}, most ${kilobytes(most)}`,
      `<= ${kilobytes(bytesPerCall)}`,
      most <= bytesPerCall,
    ],
  ]
}

function rowsOfHeld({ held, records }: Outcome): readonly Row[] {
  const all = [...held]
  const ours = all.filter(([id]) => id.startsWith('ours'))
  const theirs = all.filter(([id]) => id.startsWith('theirs'))
  const having = (what: string, some = all) => count(some, ([, notes]) => notes.has(what))
  return [
    ['held calls: re-INVITE of the caller', ...having('caller-held')],
    ['held calls: re-INVITE of the callee', ...having('callee-held')],
    ['held calls: BYE of the caller', ...having('caller-ended', ours)],
    ['held calls: BYE of the callee', ...having('callee-ended', theirs)],
    ['held calls: billed once, within 1 s', ...count(all, isBilled(records))],
  ]
}

function rowsOfBooks({ tollgate, beside, records }: Outcome): readonly Row[] {
  const answered = [...beside].filter(([, notes]) => notes.has('answered'))
  const recovered = [...records.values()].reduce((sum, row) => sum + row.recovered, 0)
  const left = tollgate.countUnstored()
  const faults = tollgate.query(booksProblems).length
  const { balance, ledger } = tollgate.wallet('load')
  return [
    [
      // 481: the end was in the journal already, and the crash has taken the 200 along.
      'calls beside, answered: BYE gets 200 or 481',
      ...count(answered, ([, notes]) => notes.has('caller-ended') || notes.has('known-as-ended')),
    ],
    ['calls beside, answered: billed once, within 1 s', ...count(answered, isBilled(records))],
    ['answered calls closed as recovered', String(recovered), 'none', recovered === 0],
    ['calls left in the journal', String(left), 'none', left === 0],
    ['balance = ledger', `${balance / 1e6} = ${ledger / 1e6}`, '', balance === ledger],
    ['records and debits that do not fit', String(faults), 'none', faults === 0],
  ]
}

const count = <T>(
  all: readonly T[],
  holds: (one: T) => boolean,
): readonly [string, string, boolean] => {
  const number = all.filter(holds).length
  return [`${number} of ${all.length}`, 'all', number === all.length]
}

const ends = ['caller-ended', 'callee-ended', 'known-as-ended']

/**
 * Once, and for the time that both sides talked. Where the process was away when a call was answered or hung
 * up, one side saw it later than the other: anything in between is right.
 */
const isBilled =
  (records: ReadonlyMap<string, StoredCall>) =>
  ([id, notes]: readonly [string, ReadonlyMap<string, number>]): boolean => {
    const row = records.get(id)
    const [ended] = ends.flatMap((end) => notes.get(end) ?? [])
    const answered = notes.get('answered')
    if (row?.records !== 1 || ended === undefined || answered === undefined) return false
    const least = ((notes.get('bye') ?? ended) - answered) / 1_000
    const most = (ended - (notes.get('placed') ?? answered)) / 1_000
    return row.billsec >= least - 1 && row.billsec <= most + 1
  }

/** What the parties saw of each such call, in ms of their clock, and what is stored. */
function wronglyBilled({ held, beside, records }: Outcome): readonly string[] {
  return [...held, ...beside]
    .filter(([, notes]) => notes.has('answered'))
    .filter((call) => !isBilled(records)(call))
    .map(([id, notes]) => {
      const seen = [...notes].map(([what, at]) => `${what} ${at}`).join(', ')
      const { records: count = 0, billsec = 0 } = records.get(id) ?? {}
      return `${id}: ${seen}; ${count} records, ${billsec} s`
    })
}

/** `sorted` in rising order; 0 when it is empty. */
const percentile = (sorted: readonly number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0

/** One row for everything in the books that does not add up. */
const booksProblems = `
  SELECT c.call_uuid FROM cdr c WHERE c.cost_micros > 0 AND 1 <> (
    SELECT count(*) FROM ledger_entry l
    WHERE l.kind = 'debit' AND l.ref = c.call_uuid AND l.amount_micros = -c.cost_micros)
  UNION ALL
  SELECT l.ref FROM ledger_entry l
  WHERE l.kind = 'debit' AND NOT EXISTS (SELECT 1 FROM cdr c WHERE c.call_uuid = l.ref)
  UNION ALL
  SELECT c.call_uuid FROM cdr c WHERE c.cost_micros <> c.billsec * 10000`

const seedFor = (nodePort: number): object => ({
  rate_plans: [{ name: 'load', currency: 'USD' }],
  rates: [{ rate_plan: 'load', prefix: '1', rate_per_minute: '0.60' }],
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
