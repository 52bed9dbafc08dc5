/** Findings in calls: spending, refusals, carriers; day by day, each against the same hours of the days before. */
import { sql } from 'kysely'
import { all, first } from '../../../schema/sql/query.ts'
import { quoted } from '../../tools/clean.ts'
import { PAST_DAYS } from './baseline.ts'
import { carrierFindings } from './carriers.ts'
import { type CallSum, callSums, samplesOf } from './call-sums.ts'
import { type Call, type Finding, type Kind, moneyText, plural } from './finding.ts'
import { type MoneyFinding, moneyFindings } from './money.ts'
import { type RefusalFinding, refusalFindings } from './refusals.ts'
import type { AnomalyWorld, Span } from './world.ts'

const DAY_MS = 86_400_000
/** More calls than this in a day are compared with fewer days: each takes more than half a second. */
const BUSY_CALLS = 50_000
/** Yesterday, the day before, and the same day of the weeks before. */
const daysWhenBusy: ReadonlySet<number> = new Set([1, 2, 7, 14])
/** Records that are looked through for where refused calls came from. */
const MAX_LOOKED = 5_000
/** Findings of a day in spending, and as many in refusals, the greatest: each looks through thousands of records. */
const MAX_OF_DAY = 50
const callKinds: readonly Kind[] = [
  'spend',
  'destination',
  'wallet',
  'rate',
  'unknown_callers',
  'trunk',
]

export async function findInCalls(
  world: AnomalyWorld,
  span: Span,
  kinds: ReadonlySet<Kind>,
): Promise<readonly Finding[]> {
  if (!callKinds.some((kind) => kinds.has(kind))) return []
  const { days, parts } = daysOf(span)
  const read: (readonly CallSum[])[] = []
  for (const [ago, day] of days.entries()) {
    const isBusy = parts === 1 && callsIn(read[0] ?? []) > BUSY_CALLS
    if (ago === 0 || !isBusy || daysWhenBusy.has(ago)) read.push(await sumsOf(world, day))
  }
  const findings: Finding[] = []
  for (let index = 0; index < parts; index += 1) {
    const [now = [], ...past] = read.slice(index, index + 1 + PAST_DAYS)
    findings.push(...(await findInDay(world, { now, past, span }, kinds)))
  }
  return findings
}

const callsIn = (sums: readonly CallSum[]): number =>
  sums.reduce((count, { calls }) => count + calls, 0)

/** The days of the period and those before, the latest first. A period below a day is one part of its own length. */
function daysOf({ from, before }: Span): {
  readonly days: readonly Span[]
  readonly parts: number
} {
  const parts = Math.max(1, Math.ceil((before - from) / DAY_MS))
  const lengthMs = parts === 1 ? before - from : DAY_MS
  const days = Array.from({ length: parts + PAST_DAYS }, (_, ago) => ({
    from: before - ago * DAY_MS - lengthMs,
    before: before - ago * DAY_MS,
  }))
  return { days, parts }
}

/** Calls of unknown sources have records as samples only: they are counted elsewhere. */
async function sumsOf(world: AnomalyWorld, { from, before }: Span): Promise<readonly CallSum[]> {
  const sums = await callSums(world, from, before)
  if (world.tenantId !== null) return sums
  const query = world.store.db
    .selectFrom('refused_calls')
    .select([
      sql<number>`CAST(coalesce(sum(calls), 0) AS bigint)`.as('calls'),
      sql<number | null>`min(minute)`.as('firstAt'),
      sql<number | null>`max(minute)`.as('lastAt'),
    ])
    .where('reason', '=', 'unknown_source')
    .where('minute', '>=', from)
    .where('minute', '<', before)
  const counted = await first(world.store, query)
  const others = sums.filter(({ denial }) => denial !== 'unknown_source')
  if (counted === undefined || counted.firstAt === null || counted.lastAt === null) return others
  const none = { customerId: null, carrier: null, prefix: null, currency: null }
  const { calls, firstAt, lastAt } = counted
  const sum = { ...none, denial: 'unknown_source', answered: 0, costMicros: 0 }
  return [...others, { ...sum, calls, firstAt, lastAt }]
}

interface Day {
  readonly now: readonly CallSum[]
  readonly past: readonly (readonly CallSum[])[]
  readonly span: Span
}

async function findInDay(
  world: AnomalyWorld,
  { now, past, span }: Day,
  kinds: ReadonlySet<Kind>,
): Promise<readonly Finding[]> {
  const money = moneyFindings(now, past)
    .filter(({ kind }) => kinds.has(kind))
    .toSorted((one, other) => other.costMicros - one.costMicros)
    .slice(0, MAX_OF_DAY)
  const refusals = refusalFindings(now, past)
    .filter(({ kind }) => kinds.has(kind))
    .toSorted((one, other) => other.calls - one.calls)
    .slice(0, MAX_OF_DAY)
  const names = await customerNames(world, [...money, ...refusals])
  const findings: Finding[] = []
  for (const found of money) {
    findings.push(await moneyFinding(world, found, names, span))
    await world.pause()
  }
  for (const found of refusals) {
    findings.push(await refusalFinding(world, found, names, span))
    await world.pause()
  }
  if (kinds.has('trunk'))
    for (const { carrier, calls, asrPercent, usualPercent, firstAt, lastAt } of carrierFindings(
      now,
      past,
    ))
      findings.push({
        ...{
          kind: 'trunk',
          severity: 'high',
          subject: `carrier ${quoted(carrier)}`,
          firstAt,
          lastAt,
        },
        what: `${asrPercent} % of ${plural(calls, 'call')} through carrier ${quoted(carrier)} were answered, usually ${usualPercent} %`,
        evidence: [],
        next: { tool: 'list_trunks', arguments: { search: carrier } },
        firstStep: null,
      })
  return findings
}

type Names = ReadonlyMap<number, string>

async function customerNames(
  { store }: AnomalyWorld,
  found: readonly { readonly customerId: number | null }[],
): Promise<Names> {
  const ids = [...new Set(found.flatMap(({ customerId }) => customerId ?? []))]
  if (ids.length === 0) return new Map()
  const query = store.db.selectFrom('customer').select(['id', 'name']).where('id', 'in', ids)
  return new Map((await all(store, query)).map(({ id, name }) => [id, name]))
}

const nameOf = (id: number, names: Names): string =>
  `customer ${id} ${quoted(names.get(id) ?? 'removed')}`

const textOf = (ms: number): string => new Date(ms).toISOString()

async function moneyFinding(
  world: AnomalyWorld,
  { kind, severity, customerId, prefix, currency, costMicros, what, firstAt, lastAt }: MoneyFinding,
  names: Names,
  { before }: Span,
): Promise<Finding> {
  const period = { from: firstAt, before }
  const samples = await samplesOf(world, period, { customerId, prefix, isCharged: true }, 5)
  const brake = prefix === null ? { prefix: '', action: 'cap' } : { prefix, action: 'block' }
  return {
    ...{ kind, severity, firstAt, lastAt },
    subject: `customer ${customerId}`,
    what: `${nameOf(customerId, names)} ${what}${whoseCalls(samples)}.`,
    evidence: samples.map(({ call_uuid }) => call_uuid),
    next: explained(samples, { tool: 'get_ledger', arguments: { customer: customerId } }),
    firstStep: {
      tool: 'set_spend_guard',
      arguments: {
        customer: customerId,
        ...brake,
        ...(prefix === null && { amount: Math.ceil(costMicros / 1e6), per: 'day' }),
        duration: 86_400,
        reason: `unusual spending of ${moneyText(costMicros, currency)}`,
      },
    },
  }
}

type Samples = Awaited<ReturnType<typeof samplesOf>>

function whoseCalls(samples: Samples): string {
  const [sample] = samples
  if (sample === undefined) return ''
  return `; the first by ${quoted(sample.caller)} from ${sample.source}`
}

const explained = ([sample]: Samples, otherwise: Call): Call =>
  sample === undefined
    ? otherwise
    : { tool: 'explain_call', arguments: { call_uuid: sample.call_uuid } }

async function refusalFinding(
  world: AnomalyWorld,
  found: RefusalFinding,
  names: Names,
  span: Span,
): Promise<Finding> {
  const { kind, code, customerId, calls, mean, firstAt, lastAt } = found
  const wanted = { customerId, denial: code }
  const samples = await samplesOf(world, { from: firstAt, before: lastAt + 60_000 }, wanted, 5)
  const subject = customerId === null ? code : `customer ${customerId}`
  const usual = `usually ${Math.round(mean * 10) / 10} in these hours`
  const refused = `${plural(calls, 'call')} refused with ${code} since ${textOf(firstAt)}, ${usual}`
  const base = { kind, subject, firstAt, lastAt, evidence: samples.map((each) => each.call_uuid) }
  const payer = customerId === null ? '' : `${nameOf(customerId, names)}: `
  const period = { start: textOf(span.from), end: textOf(span.before) }
  if (kind === 'wallet') {
    const { text, isOver } = shortage(world, found, samples)
    return {
      ...base,
      severity: isOver ? 'low' : 'high',
      what: `${payer}${refused}${text}.`,
      next: { tool: 'get_ledger', arguments: { customer: customerId, ...period } },
      firstStep: null,
    }
  }
  const groups = await groupsOf(world, found)
  const severity = 'medium'
  if (kind === 'rate') {
    const numbers = groups.map(({ start, count }) => `${quoted(start)} (${count})`).join(', ')
    const [sample] = samples
    return {
      ...{ ...base, severity, firstStep: null },
      what: `${payer}${refused}: no rate for numbers that begin with ${numbers}.`,
      next: {
        tool: 'lookup_rate',
        arguments: {
          number: sample?.callee ?? '',
          ...(customerId !== null && { customer: customerId }),
        },
      },
    }
  }
  const sources = groups.map(
    ({ source, carrier, count }) =>
      `${count} from ${source}${carrier === null ? '' : ` (carrier ${quoted(carrier)})`}`,
  )
  const [sample] = samples
  const caller = sample === undefined ? '' : `, such as caller ${quoted(sample.caller)}`
  return {
    ...{ ...base, severity, firstStep: null },
    what: `${refused}: of the first, ${sources.join(', ')}${caller}.`,
    next: explained(samples, { tool: 'search_cdrs', arguments: { disposition: 'FAILED' } }),
  }
}

function shortage(world: AnomalyWorld, { customerId }: RefusalFinding, samples: Samples) {
  const live = customerId === null ? undefined : world.ocs?.balanceOf(customerId)
  const required = samples[0]?.required ?? null
  const needed = required === null ? '' : `; the first needed ${moneyText(required, null)}`
  const there = samples[0]?.available ?? null
  const was = there === null ? '' : ` and had ${moneyText(there, null)}`
  if (live === undefined) return { text: `${needed}${was}`, isOver: false }
  const isOver = live.availableMicros > BigInt(Math.max(0, required ?? 0))
  const now = moneyText(Number(live.availableMicros), null)
  return { text: `${needed}${was}, ${now} is available now`, isOver }
}

/** Where the first refused calls came from, or went to: the most frequent three. */
async function groupsOf(
  world: AnomalyWorld,
  { code, customerId, firstAt, lastAt }: RefusalFinding,
) {
  const { store, tenantId } = world
  const some = store.db
    .selectFrom('cdr')
    .select(['source_address as source', 'carrier', 'denial_code', 'customer_id'])
    .select(sql<string>`substr(destination_number, 1, 4)`.as('start'))
    .where('start_stamp', '>=', firstAt)
    .where('start_stamp', '<=', lastAt + 60_000)
    .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId))
    .$if(customerId !== null, (own) => own.where('customer_id', '=', customerId))
    .orderBy('start_stamp')
    .limit(MAX_LOOKED)
    .as('some')
  const columns = code === 'no_rate' ? (['start'] as const) : (['source', 'carrier'] as const)
  const query = store.db
    .selectFrom(some)
    .select([...columns])
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('denial_code', '=', code)
    .groupBy([...columns])
    .orderBy('count', 'desc')
    .limit(3)
  const rows = await all(store, query)
  return rows.map((row) => ({
    start: 'start' in row ? row.start : '',
    source: 'source' in row ? row.source : '',
    carrier: 'carrier' in row ? row.carrier : null,
    count: row.count,
  }))
}
