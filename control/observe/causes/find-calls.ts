/**
 * Findings in calls: spending, refusals, carriers, in words. `reports/unusual-calls.ts` finds them.
 */
import { moneyText, plural, quoted } from '../../http/clean-text.ts'
import { moneyToDecimal } from '../../../schema/columns.ts'
import type { SetStatus } from '../../../schema/contracts/engine.ts'
import { all } from '../../../schema/sql/query.ts'
import { fieldsOf, type Json } from '../../changes/kinds.ts'
import { nodeTargetId } from '../../resources/node-plan.ts'
import { setsField } from './changes-in-force.ts'
import { visibleSets } from './state-history.ts'
import { refuseForNow } from '../../reports/summary.ts'
import type { Sample } from '../../reports/evidence.ts'
import type { AnomalyDeps, ToolCall, Finding, FindingKind, Span } from './finding.ts'
import type { RefusedCallsFinding, UnusualCalls } from '../../reports/unusual-calls.ts'

const callKinds: readonly FindingKind[] = [
  'spend',
  'destination',
  'wallet',
  'rate',
  'unknown_callers',
  'trunk',
  'capacity',
]

export async function findInCalls(
  deps: AnomalyDeps,
  span: Span,
  kinds: ReadonlySet<FindingKind>,
): Promise<readonly Finding[]> {
  const wanted = callKinds.filter((kind) => kinds.has(kind))
  if (wanted.length === 0) return []
  const { tenantId } = deps
  const found = await deps.reports.findUnusual({ ...span, tenantId, kinds: wanted })
  if (found === undefined) refuseForNow()
  const { money, refusals, carriers } = found
  const customers = await customersOf(deps, [...money, ...refusals])
  const ids = await carrierIds(
    deps,
    carriers.map(({ carrier }) => carrier),
  )
  const sets = await visibleSets(deps, deps.tenantId)
  return [
    ...money.map((each) => moneyFinding(each, customers)),
    ...refusals.map((each) => refusalFinding(deps, each, { customers, sets }, span)),
    ...carriers.map((each) => carrierFinding(each, ids)),
  ]
}

type CarrierIds = ReadonlyMap<string, number>

/** Finds carriers by name, where the name is theirs alone. */
async function carrierIds(
  { store, tenantId }: AnomalyDeps,
  names: readonly string[],
): Promise<CarrierIds> {
  if (names.length === 0) return new Map()
  const query = store.db
    .selectFrom('carrier')
    .select(['id', 'name'])
    .where('name', 'in', names)
    .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId))
  const rows = await all(store, query)
  const isOne = (name: string) => rows.filter((row) => row.name === name).length === 1
  return new Map(rows.flatMap(({ id, name }) => (isOne(name) ? [[name, id] as const] : [])))
}

/** The first step against a carrier that does not work. */
export const withoutCarrier = (carrier: number, reason: string): ToolCall => ({
  tool: 'set_trunk_state',
  arguments: { carrier, state: 'inactive', duration: 3_600, reason },
})

/** Whether a change of a carrier left it inactive. Undefined: it changed something else. */
export const isInactive = (after: Json | null): boolean | undefined => {
  const isActive = fieldsOf(after)?.['is_active']
  return isActive === undefined ? undefined : isActive === false
}

function carrierFinding(found: UnusualCalls['carriers'][number], ids: CarrierIds): Finding {
  const { carrier, calls, asrPercent, usualPercent, firstAt, lastAt, samples } = found
  const subject = `carrier ${quoted(carrier)}`
  const id = ids.get(carrier)
  return {
    kind: 'trunk',
    severity: 'high',
    subject,
    firstAt,
    lastAt,
    what:
      `${asrPercent} % of ${plural(calls, 'call')} through ${subject} were answered, usually ` +
      `${usualPercent} %`,
    figures: { calls, asr_percent: asrPercent, usual_asr_percent: usualPercent },
    evidence: uuidsOf(samples),
    advice:
      'Look at the answers of the carrier in a sample call, and ask the carrier. Until ' +
      'then, let its calls take the next route.',
    next: explained(samples, { tool: 'list_trunks', arguments: { search: carrier } }),
    firstStep: id === undefined ? null : withoutCarrier(id, 'few of its calls are answered'),
    ...(id !== undefined && {
      remedy: { kind: 'carrier' as const, ids: [String(id)], fits: isInactive },
    }),
  }
}

const uuidsOf = (samples: Samples): readonly string[] => samples.map(({ call_uuid }) => call_uuid)

interface Customer {
  readonly id: number
  readonly name: string
  readonly credit_limit_micros: number
  readonly max_daily_spend_micros: number
  readonly max_concurrent_calls: number
  readonly max_cps: number
}

type Customers = ReadonlyMap<number, Customer>

/** Those that the reader may know: the platform's customer may pay calls of a tenant. */
async function customersOf(
  { store, tenantId }: AnomalyDeps,
  found: readonly { readonly customerId: number | null }[],
): Promise<Customers> {
  const ids = [...new Set(found.flatMap(({ customerId }) => customerId ?? []))]
  if (ids.length === 0) return new Map()
  const query = store.db
    .selectFrom('customer')
    .select(['id', 'name', 'credit_limit_micros', 'max_daily_spend_micros'])
    .select(['max_concurrent_calls', 'max_cps'])
    .where('id', 'in', ids)
    .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId))
  return new Map((await all(store, query)).map((row) => [row.id, row]))
}

const nameOf = (id: number, customers: Customers): string => {
  const known = customers.get(id)
  return `customer ${id}${known === undefined ? '' : ` ${quoted(known.name)}`}`
}

const textOf = (ms: number): string => new Date(ms).toISOString()

function moneyFinding(found: UnusualCalls['money'][number], customers: Customers): Finding {
  const { kind, severity, customerId, prefix, currency, costMicros, samples } = found
  const { what, firstAt, lastAt } = found
  const brake = prefix === null ? { prefix: '', action: 'cap' } : { prefix, action: 'block' }
  return {
    kind,
    severity,
    firstAt,
    lastAt,
    subject: `customer ${customerId}`,
    what: `${nameOf(customerId, customers)} ${what}${whoseCalls(samples)}.`,
    figures: { cost: costMicros / 1e6 },
    evidence: uuidsOf(samples),
    advice:
      'Check whether a sample call is legitimate. If it is not, set a spend guard on the ' +
      'prefix, and find the phone or trunk that sent the call.',
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
    remedy: {
      kind: 'spend_guard',
      fits: (after) => isCapOf(after, customerId, prefix),
    },
  }
}

/** Whether the guard is for the customer or its whole tenant, and for a part of the prefix. */
function isCapOf(after: Json | null, customerId: number, prefix: string | null): boolean {
  const guard = fieldsOf(after)
  const guarded = guard?.['prefix']
  return (
    guard?.['customer_id'] === customerId &&
    typeof guarded === 'string' &&
    (prefix ?? '').startsWith(guarded)
  )
}

type Samples = readonly Sample[]

function whoseCalls(samples: Samples): string {
  const [sample] = samples
  if (sample === undefined) return ''
  return `; the first by ${quoted(sample.caller)} from ${sample.source}`
}

const explained = ([sample]: Samples, otherwise: ToolCall): ToolCall =>
  sample === undefined
    ? otherwise
    : { tool: 'explain_call', arguments: { call_uuid: sample.call_uuid } }

interface Known {
  readonly customers: Customers
  readonly sets: readonly SetStatus[]
}

function refusalFinding(
  deps: AnomalyDeps,
  found: RefusedCallsFinding,
  known: Known,
  span: Span,
): Finding {
  const { customers } = known
  const { kind, code, customerId, calls, mean, firstAt, lastAt, samples } = found
  const usual = `usually ${Math.round(mean * 10) / 10} in these hours`
  const refused = `${plural(calls, 'call')} refused with ${code} since ${textOf(firstAt)}, ${usual}`
  const payer = customerId === null ? '' : `${nameOf(customerId, customers)}: `
  const base = {
    kind,
    subject: customerId === null ? code : `customer ${customerId}`,
    firstAt,
    lastAt,
    figures: { refused_calls: calls, usual_a_day: Math.round(mean * 10) / 10 },
    evidence: uuidsOf(samples),
    firstStep: null,
    severity: 'medium' as const,
  }
  const customer = customerId === null ? undefined : customers.get(customerId)
  switch (kind) {
    case 'wallet': {
      const { text, isOver } = shortage(deps, customer, samples)
      const period = { start: textOf(span.from), end: textOf(span.before) }
      const isForDay = code === 'daily_spend_limit'
      return {
        ...base,
        severity: isOver ? 'low' : 'high',
        what: `${payer}${refused}${text}.`,
        next:
          customer === undefined
            ? explained(samples, { tool: 'search_cdrs', arguments: period })
            : { tool: 'get_ledger', arguments: { customer: customer.id, ...period } },
        advice:
          customer === undefined
            ? askWhoPays
            : isForDay
              ? 'Ask the customer whether the calls are legitimate. If they are, raise its ' +
                'daily limit.'
              : 'Let a person top up the wallet; meanwhile a credit limit with a duration ' +
                'lets the customer call.',
        firstStep:
          isOver || customer === undefined ? null : moreMoney(customer, samples[0], isForDay),
        remedy: {
          kind: 'customer',
          ids: [String(customerId)],
          fits: setsField(isForDay ? 'max_daily_spend_micros' : 'credit_limit_micros'),
        },
      }
    }
    case 'rate':
      return { ...base, ...missingRate(found, `${payer}${refused}`, customer) }
    case 'capacity':
      return { ...base, ...atCapacity(found, `${payer}${refused}`, customer, known.sets) }
    case 'unknown_callers':
      return { ...base, ...unknownCallers(found, refused) }
  }
}

type Part = Pick<Finding, 'what' | 'next' | 'advice'> & Partial<Finding>

/** The customer is not the reader's, or no longer there. */
const askWhoPays =
  'The customer that pays these calls is not one of yours: ask the operator of the platform.'

const limitStep = (customer: number, limit: object, reason: string): ToolCall => ({
  tool: 'set_customer_limits',
  arguments: { customer, ...limit, duration: 3_600, reason },
})

/** Some calls' worth, for an hour. */
const CREDIT = 5_000_000

const moreMoney = (customer: Customer, sample: Sample | undefined, isForDay: boolean): ToolCall =>
  isForDay
    ? limitStep(
        customer.id,
        { max_daily_spend: moneyToDecimal(customer.max_daily_spend_micros * 2) },
        'the limit of the day is reached',
      )
    : limitStep(
        customer.id,
        {
          credit_limit: moneyToDecimal(
            customer.credit_limit_micros + Math.max(CREDIT, lacking(sample)),
          ),
        },
        'the wallet is empty',
      )

const lacking = (sample: Sample | undefined): number =>
  (sample?.required ?? 0) - (sample?.available ?? 0)

function missingRate(
  { groups, samples, customerId }: RefusedCallsFinding,
  refused: string,
  customer: Customer | undefined,
): Part {
  const numbers = groups.map(({ start, count }) => `${quoted(start)} (${count})`).join(', ')
  const number = samples[0]?.callee ?? ''
  const callee = number.replace(/^\+/, '')
  const isOfOther = customerId !== null && customer === undefined
  const lookUp = {
    tool: 'lookup_rate',
    arguments: { number, ...(customer !== undefined && { customer: customer.id }) },
  }
  return {
    what: `${refused}: no rate for numbers that begin with ${numbers}.`,
    advice: isOfOther
      ? askWhoPays
      : 'Ask a person for the price: add_rate adds a rate to the plan, or propose_change ' +
        'proposes it.',
    next: isOfOther ? explained(samples, lookUp) : lookUp,
    remedy: {
      kind: 'rate',
      fits: (after) => {
        const prefix = fieldsOf(after)?.['prefix']
        return typeof prefix === 'string' && callee.startsWith(prefix)
      },
    },
  }
}

function unknownCallers({ groups, samples, code }: RefusedCallsFinding, refused: string): Part {
  const sources = groups.map(
    ({ source, carrier, count }) =>
      `${count} from ${source}${carrier === null ? '' : ` (carrier ${quoted(carrier)})`}`,
  )
  const [sample] = samples
  const caller = sample === undefined ? '' : `, such as caller ${quoted(sample.caller)}`
  const number = (sample?.caller ?? '').replace(/^\+/, '')
  return {
    what: `${refused}: of the first, ${sources.join(', ')}${caller}.`,
    advice:
      code === 'unknown_source'
        ? 'If the source is a carrier, add its address as a gateway. If it is a stranger, ' +
          'leave it: the guard bans scanners by itself.'
        : code === 'no_payer'
          ? 'Set the customer of the carrier from which these calls come.'
          : 'If the number is a customer’s, give it to the customer: add_number does, or ' +
            'propose_change proposes it.',
    next: explained(samples, { tool: 'search_cdrs', arguments: { disposition: 'FAILED' } }),
    ...(code === 'unknown_caller' && {
      remedy: {
        kind: 'customer' as const,
        fits: (after: Json | null) => {
          const numbers = fieldsOf(after)?.['numbers']
          return Array.isArray(numbers) && numbers.includes(number)
        },
      },
    }),
  }
}

function atCapacity(
  { code, calls, groups, samples }: RefusedCallsFinding,
  refused: string,
  customer: Customer | undefined,
  sets: readonly SetStatus[],
): Part {
  if (code === 'node_limit') {
    const setId = groups[0]?.setId ?? null
    const set = sets.find((each) => each.setId === setId)
    const idle = set?.nodes.find(({ state }) => state === 'inactive')
    const active = set?.nodes.filter(({ state }) => state === 'active').length ?? 0
    return {
      what:
        `${refused}: every active node of ${setId === null ? 'the set' : `set ${setId}`} had as ` +
        'many calls as its max_calls allows' +
        (set === undefined ? '.' : `; ${active} of ${plural(set.nodes.length, 'node')} active.`),
      advice:
        idle === undefined
          ? 'Add a node to the set, or raise max_calls of its nodes.'
          : `Put node ${idle.destination}, which was taken out, back into service, or raise ` +
            'max_calls of the others.',
      next: {
        tool: 'get_dispatcher_status',
        arguments: { ...(setId !== null && { setId }) },
      },
      firstStep:
        idle === undefined || setId === null
          ? null
          : {
              tool: 'set_dispatcher_state',
              arguments: {
                setId,
                destination: idle.destination,
                state: 'active',
                reason: 'the other nodes have as many calls as they may',
              },
            },
      remedy: {
        kind: 'dispatcher_node',
        fits: (after) => after === 'active',
        ...(idle !== undefined &&
          setId !== null && { ids: [nodeTargetId(setId, idle.destination)] }),
      },
    }
  }
  if (code === 'carrier_limit' || code === 'agent_limit') {
    const carrier = groups.find((group) => group.carrier !== null)?.carrier ?? null
    const whose = carrier === null ? 'The' : `Carrier ${quoted(carrier)}: the`
    return {
      what: `${refused}.`,
      advice:
        `${whose} limits max_calls and max_cps are reached: raise them, or add a route to ` +
        'another carrier.',
      next:
        code === 'carrier_limit' && carrier !== null
          ? { tool: 'list_trunks', arguments: { search: carrier } }
          : explained(samples, { tool: 'list_active_calls', arguments: {} }),
    }
  }
  if (customer === undefined)
    return {
      what: `${refused}.`,
      advice: askWhoPays,
      next: explained(samples, { tool: 'list_active_calls', arguments: {} }),
    }
  const field = code === 'cps_limit' ? 'max_cps' : 'max_concurrent_calls'
  const most = customer[field]
  return {
    what:
      `${refused}: the customer may ` +
      (field === 'max_cps'
        ? `start ${plural(most, 'call')} a second.`
        : `have ${plural(most, 'call')} at once.`),
    advice: `If the customer should have more, raise its ${field}; a duration takes it back.`,
    next: { tool: 'get_customer_balance', arguments: { customer: customer.id } },
    figures: { refused_calls: calls, limit: most },
    firstStep: limitStep(customer.id, { [field]: most * 2 || 1 }, `${field} is reached`),
    remedy: { kind: 'customer', ids: [String(customer.id)], fits: setsField(field) },
  }
}

/**
 * The amount that the first call lacked, and the balance now; a wallet is shown only to those who
 * may know it.
 */
function shortage(deps: AnomalyDeps, customer: Customer | undefined, samples: Samples) {
  const live = customer === undefined ? undefined : deps.ocs?.balanceOf(customer.id)
  const required = samples[0]?.required ?? null
  const needed = required === null ? '' : `; the first needed ${moneyText(required, null)}`
  const there = samples[0]?.available ?? null
  const was = there === null ? '' : ` and had ${moneyText(there, null)}`
  if (live === undefined) return { text: `${needed}${was}`, isOver: false }
  const isOver = live.availableMicros > BigInt(Math.max(0, required ?? 0))
  const now = moneyText(Number(live.availableMicros), null)
  return { text: `${needed}${was}, ${now} is available now`, isOver }
}
