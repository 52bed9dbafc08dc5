/** Findings in calls: spending, refusals, carriers, in words. `unusual-calls.ts` finds them. */
import { moneyText, plural, quoted } from '../../http/clean-text.ts'
import { all } from '../../../schema/sql/query.ts'
import { refuseForNow } from '../../reports/summary.ts'
import type { CarrierFinding } from '../../reports/findings.ts'
import type { Sample } from '../../reports/evidence.ts'
import type { AnomalyDeps, Call, Finding, Kind, Span } from './finding.ts'
import type { RefusedCalls, UnusualCalls } from '../../reports/unusual-calls.ts'

const callKinds: readonly Kind[] = [
  'spend',
  'destination',
  'wallet',
  'rate',
  'unknown_callers',
  'trunk',
]

export async function findInCalls(
  deps: AnomalyDeps,
  span: Span,
  kinds: ReadonlySet<Kind>,
): Promise<readonly Finding[]> {
  const wanted = callKinds.filter((kind) => kinds.has(kind))
  if (wanted.length === 0) return []
  const { tenantId } = deps
  const found = await deps.reports.findUnusual({ ...span, tenantId, kinds: wanted })
  if (found === undefined) refuseForNow()
  const { money, refusals, carriers } = found
  const names = await customerNames(deps, [...money, ...refusals])
  return [
    ...money.map((each) => moneyFinding(each, names)),
    ...refusals.map((each) => refusalFinding(deps, each, names, span)),
    ...carriers.map(carrierFinding),
  ]
}

const carrierFinding = (found: CarrierFinding): Finding => {
  const { carrier, calls, asrPercent, usualPercent, firstAt, lastAt } = found
  const subject = `carrier ${quoted(carrier)}`
  return {
    kind: 'trunk',
    severity: 'high',
    subject,
    firstAt,
    lastAt,
    what: `${asrPercent} % of ${plural(calls, 'call')} through ${subject} were answered, usually ${usualPercent} %`,
    evidence: [],
    next: { tool: 'list_trunks', arguments: { search: carrier } },
    firstStep: null,
  }
}

type Names = ReadonlyMap<number, string>

async function customerNames(
  { store }: AnomalyDeps,
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

function moneyFinding(found: UnusualCalls['money'][number], names: Names): Finding {
  const { kind, severity, customerId, prefix, currency, costMicros, samples } = found
  const { what, firstAt, lastAt } = found
  const brake = prefix === null ? { prefix: '', action: 'cap' } : { prefix, action: 'block' }
  return {
    kind,
    severity,
    firstAt,
    lastAt,
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

type Samples = readonly Sample[]

function whoseCalls(samples: Samples): string {
  const [sample] = samples
  if (sample === undefined) return ''
  return `; the first by ${quoted(sample.caller)} from ${sample.source}`
}

const explained = ([sample]: Samples, otherwise: Call): Call =>
  sample === undefined
    ? otherwise
    : { tool: 'explain_call', arguments: { call_uuid: sample.call_uuid } }

function refusalFinding(deps: AnomalyDeps, found: RefusedCalls, names: Names, span: Span): Finding {
  const { kind, code, customerId, calls, mean, firstAt, lastAt, samples, groups } = found
  const subject = customerId === null ? code : `customer ${customerId}`
  const usual = `usually ${Math.round(mean * 10) / 10} in these hours`
  const refused = `${plural(calls, 'call')} refused with ${code} since ${textOf(firstAt)}, ${usual}`
  const base = { kind, subject, firstAt, lastAt, evidence: samples.map((each) => each.call_uuid) }
  const payer = customerId === null ? '' : `${nameOf(customerId, names)}: `
  const period = { start: textOf(span.from), end: textOf(span.before) }
  if (kind === 'wallet') {
    const { text, isOver } = shortage(deps, found, samples)
    return {
      ...base,
      severity: isOver ? 'low' : 'high',
      what: `${payer}${refused}${text}.`,
      next: { tool: 'get_ledger', arguments: { customer: customerId, ...period } },
      firstStep: null,
    }
  }
  const severity = 'medium'
  if (kind === 'rate') {
    const numbers = groups.map(({ start, count }) => `${quoted(start)} (${count})`).join(', ')
    const [sample] = samples
    return {
      ...base,
      severity,
      firstStep: null,
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
    ...base,
    severity,
    firstStep: null,
    what: `${refused}: of the first, ${sources.join(', ')}${caller}.`,
    next: explained(samples, { tool: 'search_cdrs', arguments: { disposition: 'FAILED' } }),
  }
}

function shortage(deps: AnomalyDeps, { customerId }: RefusedCalls, samples: Samples) {
  const live = customerId === null ? undefined : deps.ocs?.balanceOf(customerId)
  const required = samples[0]?.required ?? null
  const needed = required === null ? '' : `; the first needed ${moneyText(required, null)}`
  const there = samples[0]?.available ?? null
  const was = there === null ? '' : ` and had ${moneyText(there, null)}`
  if (live === undefined) return { text: `${needed}${was}`, isOver: false }
  const isOver = live.availableMicros > BigInt(Math.max(0, required ?? 0))
  const now = moneyText(Number(live.availableMicros), null)
  return { text: `${needed}${was}, ${now} is available now`, isOver }
}
