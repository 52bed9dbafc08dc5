/** What is asked of call records at random, and the answers found one by one. */
import type { CallSources } from '../../control/reports/call-filters.ts'
import { execute } from '../../schema/sql/query.ts'
import { moneyToDecimal } from '../../schema/columns.ts'
import type { CdrMatch, ValueLimits } from '../../control/reports/cdr-match.ts'
import { type FindRequest, sortKeys } from '../../control/reports/columns/find-records.ts'
import { aRecord, DAY, firstDay, randomRecord, type StoredRecord } from './summed-calls.ts'

/** With what filters ask of a record, beside what sums do. */
export function searchedRecord(random: () => number): StoredRecord {
  const below = (count: number): number => Math.floor(random() * count)
  const one = <T>(...values: readonly T[]): T => values[below(values.length)] as T
  const record = randomRecord(random)
  const isBought = record.disposition === 'ANSWERED' && random() < 0.6
  return aRecord({
    ...record,
    call_uuid: aRecord().call_uuid,
    call_id: `${below(400)}@caller`,
    caller_id_number: one('+493012', '493012', 'alice', '1001', '4930123456789012345', '11*'),
    end_stamp: record.start_stamp + below(900_000),
    duration: below(900),
    sip_code: one(200, 404, 486, 503),
    hangup_cause: one('NORMAL_CLEARING', 'USER_BUSY', 'NONE'),
    mos_score: one(null, 1, 3.72, 4.41, 4.4000001),
    instance: one(null, 'sbc-1', 'sbc-2'),
    set_id: one(null, 1, 2),
    tags: one(null, '{"crm":"42"}', '{"Crm":"a\\"b","x":"Ü"}'),
    verification: one(null, 'passed', 'failed'),
    attestation: one(null, 'A', 'C'),
    carrier_cost_micros: isBought ? one(0, 9_000, 17_000_000) : null,
    carrier_currency: isBought ? one('USD', 'EUR') : null,
    carrier_prefix: isBought ? '49' : null,
    carrier_tenant_id: isBought ? one(null, 1, 2) : null,
  })
}

export function randomSearch(random: () => number): FindRequest {
  const below = (count: number): number => Math.floor(random() * count)
  const one = <T>(...values: readonly T[]): T => values[below(values.length)] as T
  const maybe = <T>(...values: readonly T[]): T | undefined =>
    random() < 0.07 ? one(...values) : undefined
  const moments = [0, 0, 1, 5, 5, random() * 5, random() * 5].map((days) => Math.floor(days * DAY))
  const [from = 0, before = 0] = [one(...moments), one(...moments)].toSorted((a, b) => a - b)
  const match: CdrMatch = {
    number: maybe('493012', '4930*', 'alice', '110*'),
    caller: maybe('+493012', '49*', 'al*', '1001', '4930123456789012345', '11*'),
    called: maybe('1900555*', '+4990012*', '49301', 'alice1'),
    extension: maybe(['1001', 'alice']),
    customer_id: maybe([1], [2, 4]),
    carrier: maybe(['telco'], ['telco', 'backup'], ['none']),
    node: maybe(['10.0.0.1'], ['10.0.0.2:5060'], ['10.0.0']),
    instance: maybe(['sbc-2']),
    set_id: maybe([1], [1, 2]),
    disposition: maybe(['BUSY'], ['BUSY', 'ANSWERED']),
    direction: maybe(['outbound']),
    code: maybe([486], [503, 404]),
    cause: maybe(['user_busy'], ['no_rate', 'none']),
    call_id: maybe('7@caller'),
    tag: maybe('crm:42', 'CRM:A"b', 'x:ü'),
    verification: maybe('passed'),
    attestation: maybe('C'),
    duration: maybe<ValueLimits>([100, 300], [undefined, 500]),
    billsec: maybe<ValueLimits>([1, undefined]),
    cost: maybe<ValueLimits>([0, 0], [10_000, 10_000], [1, undefined]),
    mos: maybe<ValueLimits>([3.72, 4.4], [4.41, undefined]),
    pdd: maybe<ValueLimits>([100, 200]),
    margin: maybe<ValueLimits>([undefined, -1], [1_000, 1_000], [0, undefined]),
  }
  const isFiltered = Object.values(match).some((value) => value !== undefined)
  return {
    scope: {
      tenantId: one(null, null, 1, 2),
      from: firstDay + from,
      before: firstDay + before,
      match: isFiltered ? match : undefined,
    },
    sort: { by: one(...sortKeys), isDescending: random() < 0.5 },
    offset: 0,
    limit: one(3, 20, 100),
    withTotals: true,
  }
}

/** Customers 1 and 2 are of tenant 1, and 3 and 4 of none. */
export async function addCustomers({ store }: Pick<CallSources, 'store'>): Promise<void> {
  const { db } = store
  const created_at = 0
  const tenants = ['one', 'two'].map((slug, at) => ({ id: at + 1, slug, name: slug, created_at }))
  await execute(store, db.insertInto('tenant').values(tenants))
  const customers = [1, 1, null, null].map((tenant_id, at) => ({
    id: at + 1,
    tenant_id,
    name: `customer ${at + 1}`,
    created_at,
    updated_at: 0,
  }))
  await execute(store, db.insertInto('customer').values(customers))
}

const isHidden = (record: StoredRecord, tenantId: number | null): boolean =>
  tenantId !== null && record.customer_id != null && (record.customer_id > 2 || tenantId !== 1)

const costOf = (record: StoredRecord, tenantId: number | null): number | null =>
  isHidden(record, tenantId) ? null : (record.cost_micros ?? 0)

const carrierCostOf = (record: StoredRecord, tenantId: number | null): number | null =>
  tenantId === null || record.carrier_tenant_id === tenantId
    ? (record.carrier_cost_micros ?? null)
    : null

function marginOf(record: StoredRecord, tenantId: number | null): number | null {
  const [sold, bought] = [costOf(record, tenantId), carrierCostOf(record, tenantId)]
  if (sold === null || bought === null || record.currency == null) return null
  return record.currency === record.carrier_currency ? sold - bought : null
}

const isNumber = (stored: string, wanted: string): boolean => {
  const plain = stored.replace(/^\+/, '')
  const asked = wanted.replace(/^\+/, '')
  return asked.endsWith('*') && asked !== '11*'
    ? plain.startsWith(asked.slice(0, -1))
    : asked === '11*'
      ? plain.startsWith('11')
      : plain === asked
}

const isWithin = (value: number | null | undefined, [from, to]: ValueLimits): boolean =>
  value != null && value >= (from ?? -Infinity) && value <= (to ?? Infinity)

export function isFound(record: StoredRecord, { scope }: Pick<FindRequest, 'scope'>): boolean {
  const { tenantId, from, before, match = {} } = scope
  const { caller_id_number: caller, destination_number: called } = record
  const is = <T>(wanted: T | undefined, test: (wanted: T) => boolean): boolean =>
    wanted === undefined || test(wanted)
  const has = <T>(list: readonly T[], value: T | null | undefined): boolean =>
    value != null && list.includes(value)
  return (
    record.start_stamp >= from &&
    record.start_stamp < before &&
    (tenantId === null || record.tenant_id === tenantId) &&
    is(match.number, (wanted) => isNumber(caller, wanted) || isNumber(called, wanted)) &&
    is(match.caller, (wanted) => isNumber(caller, wanted)) &&
    is(match.called, (wanted) => isNumber(called, wanted)) &&
    is(match.extension, (list) =>
      list.some((wanted) => isNumber(caller, wanted) || isNumber(called, wanted)),
    ) &&
    is(match.customer_id, (list) => has(list, record.customer_id)) &&
    is(match.carrier, (list) => has(list, record.carrier)) &&
    is(match.node, (list) =>
      list.some((node) => new RegExp(`^sip:${node}(?:[:;]|$)`).test(record.node ?? '')),
    ) &&
    is(match.instance, (list) => has(list, record.instance)) &&
    is(match.set_id, (list) => has(list, record.set_id)) &&
    is(match.disposition, (list) => has(list, record.disposition)) &&
    is(match.direction, (list) => has(list, record.direction)) &&
    is(match.code, (list) => has(list, record.sip_code)) &&
    is(match.cause, (list) =>
      list.some(
        (cause) =>
          record.hangup_cause === cause.toUpperCase() || record.denial_code === cause.toLowerCase(),
      ),
    ) &&
    is(match.call_id, (wanted) => record.call_id === wanted) &&
    is(match.tag, (wanted) =>
      Object.entries(JSON.parse(record.tags ?? '{}') as Record<string, string>).some(
        ([name, value]) => `${name}:${value}`.toLowerCase() === wanted.toLowerCase(),
      ),
    ) &&
    is(match.verification, (wanted) => record.verification === wanted) &&
    is(match.attestation, (wanted) => record.attestation === wanted) &&
    is(match.duration, (limits) => isWithin(record.duration, limits)) &&
    is(match.billsec, (limits) => isWithin(record.billsec, limits)) &&
    is(match.cost, (limits) => isWithin(costOf(record, tenantId), limits)) &&
    is(match.mos, (limits) => isWithin(record.mos_score, limits)) &&
    is(match.pdd, (limits) => isWithin(record.post_dial_delay_ms, limits)) &&
    is(match.margin, (limits) => isWithin(marginOf(record, tenantId), limits))
  )
}

const keyOf = (record: StoredRecord, { scope: { tenantId }, sort }: FindRequest): number | null => {
  const keys = {
    start: record.start_stamp,
    end: record.end_stamp,
    duration: record.duration,
    billsec: record.billsec,
    cost: costOf(record, tenantId),
    mos: record.mos_score ?? null,
    pdd: record.post_dial_delay_ms ?? null,
    margin: marginOf(record, tenantId),
    code: record.sip_code,
  }
  return keys[sort.by]
}

/** `records` have the ids 1, 2 … */
export function foundOneByOne(records: readonly StoredRecord[], asked: FindRequest) {
  const { tenantId } = asked.scope
  const found = records
    .map((record, index) => ({ record, id: index + 1, key: keyOf(record, asked) }))
    .filter(({ record }) => isFound(record, asked))
  const sign = asked.sort.isDescending ? -1 : 1
  const ordered = found.toSorted((one, other) => {
    if (one.key === null || other.key === null) {
      if (one.key !== other.key) return one.key === null ? 1 : -1
    } else if (one.key !== other.key) return sign * (one.key - other.key)
    return sign * (one.record.start_stamp - other.record.start_stamp || one.id - other.id)
  })
  const answered = found.filter(({ record }) => record.disposition === 'ANSWERED').length
  const billsec = found.reduce((sum, { record }) => sum + record.billsec, 0)
  const sums = (
    amountOf: (record: StoredRecord) => number | null,
    currencyOf: (record: StoredRecord) => string | null | undefined,
  ) => {
    const amounts: Record<string, number> = {}
    for (const { record } of found) {
      const [amount, currency] = [amountOf(record), currencyOf(record)]
      if (amount === null || currency == null) continue
      amounts[currency] = (amounts[currency] ?? 0) + amount
    }
    return Object.fromEntries(
      Object.entries(amounts).map(([currency, micros]) => [currency, moneyToDecimal(micros)]),
    )
  }
  return {
    ids: ordered.map(({ id }) => id),
    totals: {
      calls: found.length,
      answered,
      billsec,
      asr_percent: found.length === 0 ? null : Math.round((answered / found.length) * 1_000) / 10,
      acd_seconds: answered === 0 ? null : Math.round(billsec / answered),
      cost: sums(
        (record) => costOf(record, tenantId),
        (record) => record.currency,
      ),
      carrier_cost: sums(
        (record) => carrierCostOf(record, tenantId),
        (record) => record.carrier_currency,
      ),
      margin: sums(
        (record) => marginOf(record, tenantId),
        (record) => record.currency,
      ),
    },
  }
}
