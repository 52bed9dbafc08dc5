/** What a key did in a period: from where, on which routes, what was refused, what it changed. */
import { sql } from 'kysely'
import { z } from 'zod'
import { HOUR_MS } from '../../schema/clock.ts'
import { timeToText } from '../../schema/columns.ts'
import type { Store } from '../../schema/open.ts'
import { all } from '../../schema/sql/query.ts'
import { startsWith } from '../../schema/sql/text-search.ts'
import { isChange } from '../audit/audit-log.ts'
import { type AppKey, keyStates } from '../auth/keys/app-key.ts'
import { keyView } from '../auth/keys/key-view.ts'
import { type Asked, count, moment } from './views.ts'

/** Entries of the audit log that are looked through for one key. */
const MAX_AUDITED = 10_000
const MAX_HOURS = 48
const MAX_TEXT = 120

export const keyActivityView = z.strictObject({
  uuid: z.string(),
  name: z.string(),
  state: z.enum(keyStates),
  addresses: z
    .array(
      z.strictObject({
        address: z.string(),
        is_new: z.boolean().describe('First seen in the period.'),
        first_at: moment,
        last_at: moment,
        requests: count.describe('Since first_at, refused ones included.'),
        denied: count.describe('Of them those refused with 401, 403 or 429.'),
      }),
    )
    .describe('Last seen first, of the period and before: those used most, and those seen last.'),
  routes: z.array(z.strictObject({ route: z.string(), requests: count, failed: count })),
  refused: z
    .array(
      z.strictObject({
        what: z.string().describe('A route, or `tool` and its name.'),
        code: z.string(),
        attempts: count,
        first_at: moment,
        last_at: moment,
      }),
    )
    .describe('Whatever was not carried out, most attempts first.'),
  changes: z
    .array(
      z.strictObject({
        at: moment,
        action: z.string(),
        target: z.string(),
        address: z.string(),
        correlation_id: z.string(),
      }),
    )
    .describe('What it has changed, newest first.'),
  hours: z
    .array(z.strictObject({ at: moment, requests: count, failed: count }))
    .describe('Hours with requests, newest first.'),
})

export type KeyActivityView = z.output<typeof keyActivityView>

type Reader = Pick<Store, 'statements' | 'db'>

export async function activityOf(
  store: Reader,
  key: AppKey,
  asked: Asked,
  now: number,
): Promise<KeyActivityView> {
  const hours = await hoursOf(store, key.id, asked)
  const { name, state } = keyView(key, now)
  return {
    ...{ uuid: key.uuid, name, state },
    addresses: (await addressesOf(store, key.id, asked)).map((row) => ({
      ...{ address: row.address, is_new: row.first_at >= asked.from },
      ...{ first_at: timeToText(row.first_at), last_at: timeToText(row.last_at) },
      ...{ requests: row.requests, denied: row.denied },
    })),
    routes: routesIn(hours).slice(0, asked.limit),
    refused: [...refusedIn(hours), ...(await refusedTools(store, key.uuid, asked))]
      .toSorted((one, other) => other.attempts - one.attempts)
      .slice(0, asked.limit),
    changes: (await changesBy(store, key.uuid, asked)).map(({ at, target, ...entry }) => ({
      ...entry,
      at: timeToText(at),
      target: target.slice(0, MAX_TEXT),
    })),
    hours: perHour(hours).slice(0, Math.min(MAX_HOURS, asked.limit * 2)),
  }
}

/** Half of them are those that are used most: fresh addresses, however many, do not hide them. */
async function addressesOf(store: Reader, keyId: number, { from, before, limit }: Asked) {
  const known = store.db
    .selectFrom('key_address')
    .selectAll()
    .where('application_key_id', '=', keyId)
    .where('last_at', '>=', from)
    .where('first_at', '<', before)
  const most = known.orderBy(sql`requests - denied`, 'desc').orderBy('first_at')
  const usual = await all(store, most.limit(Math.ceil(limit / 2)))
  const last = await all(store, known.orderBy('last_at', 'desc').orderBy('address').limit(limit))
  const names = new Set(usual.map(({ address }) => address))
  const others = last.filter(({ address }) => !names.has(address)).slice(0, limit - usual.length)
  return [...usual, ...others].toSorted(
    (one, other) => other.last_at - one.last_at || (one.address < other.address ? -1 : 1),
  )
}

export interface HourOfKey {
  readonly hour: number
  readonly route: string
  /** Empty: a success. */
  readonly outcome: string
  readonly requests: number
  readonly first_at: number
  readonly last_at: number
}

/** Bounded by hours, routes and codes. */
function hoursOf(
  store: Reader,
  keyId: number,
  { from, before }: Pick<Asked, 'from' | 'before'>,
): Promise<HourOfKey[]> {
  const query = store.db
    .selectFrom('api_hour')
    .select(['hour', 'route', 'outcome', 'requests', 'first_at', 'last_at'])
    .where('application_key_id', '=', keyId)
    .where('hour', '>=', Math.floor(from / HOUR_MS))
    .where('hour', '<', Math.ceil(before / HOUR_MS))
  return all(store, query)
}

function routesIn(rows: readonly HourOfKey[]) {
  const routes = new Map<string, { route: string; requests: number; failed: number }>()
  for (const { route, outcome, requests } of rows) {
    const sum = routes.get(route) ?? { route, requests: 0, failed: 0 }
    sum.requests += requests
    if (outcome !== '') sum.failed += requests
    routes.set(route, sum)
  }
  return [...routes.values()].toSorted((one, other) => other.requests - one.requests)
}

function perHour(rows: readonly HourOfKey[]) {
  const hours = new Map<number, { requests: number; failed: number }>()
  for (const { hour, outcome, requests } of rows) {
    const sum = hours.get(hour) ?? { requests: 0, failed: 0 }
    sum.requests += requests
    if (outcome !== '') sum.failed += requests
    hours.set(hour, sum)
  }
  return [...hours]
    .toSorted(([one], [other]) => other - one)
    .map(([hour, sum]) => ({ at: timeToText(hour * HOUR_MS), ...sum }))
}

interface Refused {
  readonly what: string
  readonly code: string
  attempts: number
  first: number
  last: number
}

function refusedIn(rows: readonly HourOfKey[]) {
  const refused = new Map<string, Refused>()
  for (const { route, outcome, requests, first_at, last_at } of rows) {
    if (outcome === '') continue
    const name = `${route} ${outcome}`
    const known = refused.get(name)
    const sum = known ?? { what: route, code: outcome, attempts: 0, first: first_at, last: last_at }
    sum.attempts += requests
    sum.first = Math.min(sum.first, first_at)
    sum.last = Math.max(sum.last, last_at)
    refused.set(name, sum)
  }
  return [...refused.values()].map(refusedView)
}

const refusedView = ({ what, code, attempts, first, last }: Refused) => ({
  ...{ what, code, attempts, first_at: timeToText(first), last_at: timeToText(last) },
})

/** A tool that is refused over MCP is no refusal of its route. */
async function refusedTools(store: Reader, uuid: string, { from, before, limit }: Asked) {
  const entries = store.db
    .selectFrom('audit_entry')
    .select(['action', 'code', 'at'])
    .where('actor', '=', `key:${uuid}`)
    .where('at', '>=', from)
    .where('at', '<', before)
    .where('outcome', '<>', 'success')
    .where((entry) => startsWith(entry.ref('action'), 'tool '))
    .orderBy('at', 'desc')
    .limit(MAX_AUDITED)
    .as('entries')
  const query = store.db
    .selectFrom(entries)
    .select(['action', 'code'])
    .select((entry) => entry.fn.countAll<number>().as('attempts'))
    .select([sql<number>`min(at)`.as('first'), sql<number>`max(at)`.as('last')])
    .groupBy(['action', 'code'])
    .orderBy('attempts', 'desc')
    .limit(limit)
  const rows = await all(store, query)
  return rows.map(({ action, code, ...sum }) =>
    refusedView({ what: action, code: code ?? '', ...sum }),
  )
}

/** Newest first. */
export function changesBy(store: Reader, uuid: string, { from, before, limit }: Asked) {
  const query = store.db
    .selectFrom('audit_entry')
    .select(['at', 'action', 'target', 'address', 'correlation_id'])
    .where('actor', '=', `key:${uuid}`)
    .where('at', '>=', from)
    .where('at', '<', before)
    .where('outcome', '=', 'success')
    .where(isChange)
    .orderBy('at', 'desc')
    .limit(limit)
  return all(store, query)
}
