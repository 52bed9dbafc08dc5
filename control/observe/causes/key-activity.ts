/** The activity of a key in a period: addresses, routes, refusals, changes. */
import { sql } from 'kysely'
import { z } from 'zod'
import { HOUR_MS } from '../../../schema/clock.ts'
import { timeToText } from '../../../schema/columns.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { all, startsWith } from '../../../schema/sql/query.ts'
import { isChange } from '../../changes/audit.ts'
import { keyView } from '../../resources/key-view.ts'
import { MAX_COUNTED } from '../../http/envelope.ts'
import { countOf } from '../../http/rows.ts'
import { count, moment } from '../../http/view-fields.ts'
import { groupCount } from './failures.ts'
import type { HistoryQuery } from './state-history.ts'
import { type AppKey, keyStates } from '../../auth/app-key.ts'

/** The most entries of the audit log that are read for one key. */
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
  totals: z
    .strictObject({
      addresses: count,
      routes: count,
      refused: count,
      changes: count,
      hours: count,
    })
    .describe('Of each list, listed or not.'),
  complete: z
    .boolean()
    .describe('False: a list is shorter than its total. Raise limit, or ask for a shorter period.'),
})

export type KeyActivityView = z.output<typeof keyActivityView>

type Reader = Pick<Store, 'statements' | 'db'>

export async function activityOf(
  store: Reader,
  key: AppKey,
  period: HistoryQuery,
  now: number,
): Promise<KeyActivityView> {
  const { name, state } = keyView(key, now)
  const addresses = await addressesOf(store, key.id, period)
  const routes = await routesOf(store, key.id, period)
  const refused = [
    await refusedRoutes(store, key.id, period),
    await refusedTools(store, key.uuid, period),
  ]
  const changes = await changesBy(store, key.uuid, period)
  const hours = await lastHours(store, key.id, period)
  const lists = {
    addresses: addresses.map((row) => ({
      address: row.address,
      is_new: row.first_at >= period.from,
      first_at: timeToText(row.first_at),
      last_at: timeToText(row.last_at),
      requests: row.requests,
      denied: row.denied,
    })),
    routes: routes.map(({ route, requests: count, failed: bad }) => ({
      route,
      requests: count,
      failed: bad,
    })),
    refused: refused
      .flat()
      .map(refusedView)
      .toSorted((one, other) => other.attempts - one.attempts)
      .slice(0, period.limit),
    changes: changes.map(({ at, target, ...entry }) => ({
      ...entry,
      at: timeToText(at),
      target: target.slice(0, MAX_TEXT),
    })),
    hours: hours.map(({ hour, requests: count, failed: bad }) => ({
      at: timeToText(hour * HOUR_MS),
      requests: count,
      failed: bad,
    })),
  }
  const totals = {
    addresses: totalOf(addresses),
    routes: totalOf(routes),
    refused: refused.reduce((sum, rows) => sum + totalOf(rows), 0),
    changes: await countOf(
      store,
      changesOf(store, key.uuid, period).select('id').limit(MAX_COUNTED),
    ),
    hours: totalOf(hours),
  }
  const isWhole = (name: keyof typeof totals) => lists[name].length >= totals[name]
  const names = ['addresses', 'routes', 'refused', 'changes', 'hours'] as const
  return { uuid: key.uuid, name, state, ...lists, totals, complete: names.every(isWhole) }
}

const totalOf = (rows: readonly { readonly total: number }[]): number => rows[0]?.total ?? 0

/** Half of them are those that are used most: fresh addresses, however many, do not hide them. */
async function addressesOf(store: Reader, keyId: number, { from, before, limit }: HistoryQuery) {
  const known = store.db
    .selectFrom('key_address')
    .selectAll()
    .select(groupCount)
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

/**
 * The hours of the key in the period: a busy key has tens of thousands of rows, so the database
 * sums them.
 */
const hoursOf = (store: Reader, keyId: number, { from, before }: HistoryQuery) =>
  store.db
    .selectFrom('api_hour')
    .where('application_key_id', '=', keyId)
    .where('hour', '>=', Math.floor(from / HOUR_MS))
    .where('hour', '<', Math.ceil(before / HOUR_MS))

const requests = sql<number>`CAST(sum(api_hour.requests) AS bigint)`
const failed = sql<number>`CAST(sum(CASE WHEN outcome = '' THEN 0 ELSE api_hour.requests END) AS bigint)`

/** The routes of a key; among equal ones, the first seen first. */
function routesOf(store: Reader, keyId: number, period: HistoryQuery) {
  const query = hoursOf(store, keyId, period)
    .select(['route', requests.as('requests'), failed.as('failed')])
    .select((row) => row.fn.min('hour').as('firstHour'))
    .select(groupCount)
    .groupBy('route')
    .orderBy(sql`sum(api_hour.requests)`, 'desc')
    .orderBy('firstHour')
    .orderBy('route')
    .limit(period.limit)
  return all(store, query)
}

function refusedRoutes(store: Reader, keyId: number, period: HistoryQuery) {
  const query = hoursOf(store, keyId, period)
    .select(['route as what', 'outcome as code', requests.as('attempts')])
    .select([sql<number>`min(first_at)`.as('first'), sql<number>`max(last_at)`.as('last')])
    .select((row) => row.fn.min('hour').as('firstHour'))
    .select(groupCount)
    .where('outcome', '<>', '')
    .groupBy(['route', 'outcome'])
    .orderBy(sql`sum(api_hour.requests)`, 'desc')
    .orderBy('firstHour')
    .orderBy('route')
    .orderBy('outcome')
    .limit(period.limit)
  return all(store, query)
}

function lastHours(store: Reader, keyId: number, period: HistoryQuery) {
  const query = hoursOf(store, keyId, period)
    .select(['hour', requests.as('requests'), failed.as('failed')])
    .select(groupCount)
    .groupBy('hour')
    .orderBy('hour', 'desc')
    .limit(Math.min(MAX_HOURS, period.limit * 2))
  return all(store, query)
}

interface RefusedAttempts {
  readonly what: string
  readonly code: string
  readonly attempts: number
  readonly first: number
  readonly last: number
}

const refusedView = ({ what, code, attempts, first, last }: RefusedAttempts) => ({
  what,
  code,
  attempts,
  first_at: timeToText(first),
  last_at: timeToText(last),
})

/** A tool that is refused over MCP is no refusal of its route. */
async function refusedTools(store: Reader, uuid: string, { from, before, limit }: HistoryQuery) {
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
    .select([sql<number>`min(at)`.as('first'), sql<number>`max(at)`.as('last'), groupCount])
    .groupBy(['action', 'code'])
    .orderBy('attempts', 'desc')
    .limit(limit)
  const rows = await all(store, query)
  return rows.map(({ action, code, ...sum }) => ({ what: action, code: code ?? '', ...sum }))
}

/** Newest first. */
export function changesBy(store: Reader, uuid: string, period: HistoryQuery) {
  const query = changesOf(store, uuid, period)
    .select(['at', 'action', 'target', 'address', 'correlation_id'])
    .orderBy('at', 'desc')
    .limit(period.limit)
  return all(store, query)
}

const changesOf = (store: Reader, uuid: string, { from, before }: HistoryQuery) =>
  store.db
    .selectFrom('audit_entry')
    .where('actor', '=', `key:${uuid}`)
    .where('at', '>=', from)
    .where('at', '<', before)
    .where('outcome', '=', 'success')
    .where(isChange)
