/** Findings in the use of keys. */
import { sql } from 'kysely'
import { DAY_MS, HOUR_MS } from '../../../schema/clock.ts'
import { all } from '../../../schema/sql/query.ts'
import { fieldsOf } from '../../changes/kinds.ts'
import { plural, quoted } from '../../http/clean-text.ts'
import type { AnomalyDeps, Finding, Span } from './finding.ts'
import { changesBy } from './key-activity.ts'
import { compared, type Limits, PAST_DAYS } from '../../reports/findings.ts'

const PAST_MS = PAST_DAYS * 24 * HOUR_MS
/** Only the keys with the most requests are examined. */
const MAX_KEYS = 500
const MAX_CHANGES = 500
/** As long as a key is new, many changes by it are what it was made for. */
const SETTING_UP_MS = 3 * DAY_MS

export async function findInKeys(deps: AnomalyDeps, span: Span): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const key of await usedKeys(deps, span)) {
    const finding = await findingOf(deps, key, span)
    if (finding !== undefined) findings.push(finding)
    await deps.pause()
  }
  return findings
}

function usedKeys({ store, tenantId, domain }: AnomalyDeps, { from, before }: Span) {
  const query = store.db
    .selectFrom('api_hour')
    .innerJoin('application_key', 'application_key.id', 'api_hour.application_key_id')
    .select(['application_key.id', 'application_key.uuid', 'application_key.name'])
    .select('application_key.created_at as createdAt')
    .select([sql<number>`min(first_at)`.as('firstAt'), sql<number>`max(last_at)`.as('lastAt')])
    .where('api_hour.hour', '>=', Math.floor(from / HOUR_MS))
    .where('api_hour.hour', '<', Math.ceil(before / HOUR_MS))
    .$if(tenantId !== null, (own) => own.where('application_key.tenant_id', '=', tenantId))
    .$if(domain !== null, (own) => own.where('application_key.domain', '=', domain))
    .groupBy(['application_key.id', 'application_key.uuid', 'application_key.name'])
    .groupBy('application_key.created_at')
    .orderBy(sql`sum(api_hour.requests)`, 'desc')
    .limit(MAX_KEYS)
  return all(store, query)
}

type UsedKey = Awaited<ReturnType<typeof usedKeys>>[number]

async function findingOf(
  { store }: AnomalyDeps,
  { id, uuid, name, createdAt, firstAt, lastAt }: UsedKey,
  { from, before }: Span,
): Promise<Finding | undefined> {
  const addresses = store.db
    .selectFrom('key_address')
    .select(['address', 'first_at', 'requests'])
    .where('application_key_id', '=', id)
    .where('first_at', '<', before)
  const hours = store.db
    .selectFrom('api_hour')
    .select(['hour', 'outcome'])
    .select(sql<number>`CAST(sum(requests) AS bigint)`.as('requests'))
    .where('application_key_id', '=', id)
    .where('hour', '>=', Math.floor((from - PAST_MS) / HOUR_MS))
    .where('hour', '<', Math.ceil(before / HOUR_MS))
    .groupBy(['hour', 'outcome'])
  const past = { from: from - PAST_MS, before, limit: MAX_CHANGES }
  const changes = await changesBy(store, uuid, past)
  const made = changes.filter(({ at }) => at >= from)
  const found = keyFinding(
    {
      addresses: await all(store, addresses),
      hours: await all(store, hours),
      changedAt: changes.map(({ at }) => at),
      changedFrom: made.map(({ address }) => address),
      isSettingUp: createdAt > before - SETTING_UP_MS,
    },
    from,
    before,
  )
  if (found === undefined) return undefined
  const period = { start: new Date(from).toISOString(), end: new Date(before).toISOString() }
  return {
    kind: 'key_use',
    severity: found.severity,
    subject: `key ${uuid}`,
    what: `key ${quoted(name)} ${found.what}.`,
    firstAt: Math.max(firstAt, from),
    lastAt,
    figures: found.figures,
    advice:
      'Ask the owner of the key. If it is not the owner, suspend the key: resume_api_key ' +
      'brings it back.',
    remedy: {
      kind: 'api_key',
      ids: [uuid],
      fits: (after) => {
        const { suspended_at: suspended, revoked_at: revoked } = fieldsOf(after) ?? {}
        return suspended === undefined && revoked === undefined
          ? undefined
          : typeof suspended === 'number' || typeof revoked === 'number'
      },
    },
    evidence: [uuid, ...made.slice(0, 4).map(({ correlation_id }) => correlation_id)],
    next: { tool: 'get_key_activity', arguments: { uuid, ...period } },
    firstStep: {
      tool: 'suspend_api_key',
      arguments: { identifier: uuid, duration: 3_600, reason: 'unusual use of the key' },
    },
  }
}

/** Uses of a key that are new for it: addresses, refusals, hours, changes. Pure. */
const denials: Limits = { floor: 10, newFloor: 20, factor: 5 }
const changing: Limits = { floor: 5, newFloor: 10, factor: 3 }
/** Requests in hours of the day in which the key was never used. */
const MIN_AT_ODD_HOURS = 10
/** Days with use: a key without them has no hours of its own. */
const MIN_DAYS = 5
const DAY_HOURS = 24

export interface KeyHour {
  readonly hour: number
  readonly outcome: string
  readonly requests: number
}

export interface KeyFacts {
  readonly addresses: readonly {
    readonly address: string
    readonly first_at: number
    readonly requests: number
  }[]
  /** Hours of the period and of the days before it. */
  readonly hours: readonly KeyHour[]
  /** Times of its changes in the period and before, milliseconds UTC. */
  readonly changedAt: readonly number[]
  /** It was made a moment ago: who makes a key sets something up with it. */
  readonly isSettingUp: boolean
  /** Addresses from which it changed something in the period. */
  readonly changedFrom: readonly string[]
}

interface KeyFinding {
  readonly severity: 'critical' | 'high' | 'medium'
  readonly what: string
  readonly figures: Readonly<Record<string, number>>
}

const denialCodes: ReadonlySet<string> = new Set([
  'address_not_allowed',
  'insufficient_scope',
  'wrong_tenant',
  'wrong_domain',
  'forbidden',
  'unauthorized',
  'rate_limited',
  '401',
  '403',
  '429',
])

/** Undefined: nothing is unusual. `from` and `before`: the period in milliseconds UTC. */
function keyFinding(facts: KeyFacts, from: number, before: number): KeyFinding | undefined {
  const { hours } = facts
  const added = newAddresses(facts, from)
  const signs = [
    addressSign(added),
    denialSign(facts, from),
    hoursSign(facts, from, before),
    changesSign(facts, from),
  ].filter((sign) => sign !== undefined)
  if (signs.length === 0) return undefined
  const hasChangedFromNew = added.some(({ address }) => facts.changedFrom.includes(address))
  const severity = hasChangedFromNew ? 'critical' : signs.length > 1 ? 'high' : 'medium'
  const refused = hours.filter(({ outcome }) => denialCodes.has(outcome))
  const figures = {
    new_addresses: added.length,
    refused_requests: byDay(refused, from).now,
    changes: facts.changedAt.filter((at) => at >= from).length,
  }
  return {
    severity,
    figures,
    what: `${signs.join('; ')}${hasChangedFromNew ? ', from a new address' : ''}`,
  }
}

/** A key that was not used before has no usual address. */
function newAddresses({ addresses }: KeyFacts, from: number) {
  const isKnown = addresses.some(({ first_at }) => first_at < from)
  return isKnown ? addresses.filter(({ first_at }) => first_at >= from) : []
}

function addressSign(added: KeyFacts['addresses']): string | undefined {
  const [first] = added.toSorted((one, other) => one.first_at - other.first_at)
  if (first === undefined) return undefined
  const more = added.length > 1 ? ` and ${added.length - 1} more` : ''
  const requests = added.reduce((sum, each) => sum + each.requests, 0)
  return (
    `is used from the new address ${first.address}${more} since ${timeOf(first.first_at)}, ` +
    plural(requests, 'request')
  )
}

function denialSign({ hours }: KeyFacts, from: number): string | undefined {
  const refused = hours.filter(({ outcome }) => denialCodes.has(outcome))
  const { now, past } = byDay(refused, from)
  const { isUnusual, mean } = compared(now, past, hasUse(hours, from), denials)
  return isUnusual ? `${plural(now, 'refused attempt')}, usually ${usual(mean)} a day` : undefined
}

function hoursSign({ hours }: KeyFacts, from: number, before: number): string | undefined {
  const isPast = ({ hour }: KeyHour): boolean => (hour + 1) * HOUR_MS <= from
  const days = new Set(hours.filter(isPast).map(({ hour }) => Math.floor(hour / DAY_HOURS)))
  if (days.size < MIN_DAYS) return undefined
  const own = new Set(hours.filter(isPast).map(({ hour }) => hour % DAY_HOURS))
  const odd = hours.filter(
    ({ hour }) =>
      hour * HOUR_MS >= from - HOUR_MS && hour * HOUR_MS < before && !own.has(hour % DAY_HOURS),
  )
  const requests = odd.filter((each) => !isPast(each)).reduce((sum, each) => sum + each.requests, 0)
  const [first] = odd.map(({ hour }) => hour % DAY_HOURS).toSorted((a, b) => a - b)
  return requests >= MIN_AT_ODD_HOURS && first !== undefined
    ? `${plural(requests, 'request')} at hours of the day in which it was never used, such as ` +
        `${String(first).padStart(2, '0')}:00 UTC`
    : undefined
}

function changesSign(
  { changedAt, hours, isSettingUp }: KeyFacts,
  from: number,
): string | undefined {
  if (isSettingUp) return undefined
  const changes = changedAt.map((at) => ({
    hour: Math.floor(at / HOUR_MS),
    outcome: '',
    requests: 1,
    isNow: at >= from,
  }))
  const now = changes.filter(({ isNow }) => isNow).length
  const { past } = byDay(
    changes.filter(({ isNow }) => !isNow),
    from,
  )
  const { isUnusual, mean } = compared(now, past, hasUse(hours, from), changing)
  return isUnusual ? `made ${plural(now, 'change')}, usually ${usual(mean)} a day` : undefined
}

const hasUse = (hours: readonly KeyHour[], from: number): boolean =>
  hours.some(({ hour }) => (hour + 1) * HOUR_MS <= from)

/** Splits into the part since `from`, and the part of each day before. */
function byDay(hours: readonly KeyHour[], from: number) {
  const past = Array.from({ length: PAST_DAYS }, () => 0)
  let now = 0
  for (const { hour, requests } of hours) {
    const ago = from - hour * HOUR_MS
    if (ago < HOUR_MS) now += requests
    else {
      const day = Math.floor((ago - HOUR_MS) / (DAY_HOURS * HOUR_MS))
      if (day < PAST_DAYS) past[day] = (past[day] ?? 0) + requests
    }
  }
  return { now, past }
}

const usual = (mean: number): string => (mean === 0 ? 'none' : String(Math.round(mean * 10) / 10))
const timeOf = (ms: number): string => `${new Date(ms).toISOString().slice(0, 16)}Z`
