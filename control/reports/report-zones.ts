/** The zone of a report: where its days begin, and which moment a date without a time is. */
import { first, type Tables } from '../../schema/sql/query.ts'
import { type Zone, zoneOf } from '../../schema/time-zones.ts'
import type { Window } from '../../schema/records/record-windows.ts'
import { momentIn, type ZonedTime } from '../http/fields.ts'

interface ZoneQuestion {
  /** IANA name; undefined: the reader names none. */
  readonly asked: string | undefined
  /** The one whose calls are meant; undefined: those of all. */
  readonly customerId?: number | undefined
  /** The tenant of the reader; null: the platform. */
  readonly tenantId: number | null
}

/** The zone that is asked for, else the customer's, else the tenant's, else UTC. */
export async function zoneOfReport(
  store: Tables,
  { asked, customerId, tenantId }: ZoneQuestion,
): Promise<Zone> {
  if (asked !== undefined) return zoneOf(asked)
  const ofCustomer =
    customerId === undefined ? undefined : await zoneOfCustomer(store, customerId, tenantId)
  const ofTenant = tenantId === null ? undefined : await zoneOfTenant(store, tenantId)
  return zoneOf(ofCustomer ?? ofTenant ?? 'UTC')
}

/** A reader is told nothing of the customers of others. */
async function zoneOfCustomer(
  store: Tables,
  customerId: number,
  tenantId: number | null,
): Promise<string | null | undefined> {
  const query = store.db
    .selectFrom('customer')
    .leftJoin('tenant', 'tenant.id', 'customer.tenant_id')
    .select(['customer.time_zone as own', 'tenant.time_zone as ofTenant'])
    .where('customer.id', '=', customerId)
    .$if(tenantId !== null, (rows) => rows.where('customer.tenant_id', '=', tenantId))
  const row = await first(store, query)
  return row?.own ?? row?.ofTenant
}

async function zoneOfTenant(store: Tables, tenantId: number): Promise<string | null | undefined> {
  const query = store.db.selectFrom('tenant').select('time_zone').where('id', '=', tenantId)
  return (await first(store, query))?.time_zone
}

/** A period as it is asked for: `before` is exclusive. */
export interface ZonedPeriod {
  readonly from: ZonedTime
  readonly before: ZonedTime
}

export const periodIn = (zone: Zone, { from, before }: ZonedPeriod): Window => ({
  from: momentIn(from, zone),
  before: momentIn(before, zone),
})

/** The bounds of a customer's list. */
export interface CustomerBounds {
  readonly start_date?: ZonedTime | undefined
  readonly end_date?: ZonedTime | undefined
  /** IANA name; undefined: the zone of the customer. */
  readonly time_zone?: string | undefined
}

export async function boundsOfCustomer(
  store: Tables,
  customerId: number,
  { start_date: start, end_date: end, time_zone: asked }: CustomerBounds,
): Promise<{ readonly start_date: number | undefined; readonly end_date: number | undefined }> {
  const zone = await zoneOfReport(store, { asked, customerId, tenantId: null })
  return {
    start_date: start === undefined ? undefined : momentIn(start, zone),
    end_date: end === undefined ? undefined : momentIn(end, zone),
  }
}

/** The length by a clock of the zone: a day is one whether it has 23, 24 or 25 hours. */
export const lengthIn = (zone: Zone, { from, before }: Window): number =>
  before + zone.offsetMs(before) - from - zone.offsetMs(from)

/** RFC 3339 with milliseconds and the offset of the zone. */
export function timeInZone(ms: number, zone: Zone): string {
  const offset = zone.offsetMs(ms)
  const minutes = Math.abs(offset) / 60_000
  const two = (count: number): string => String(count).padStart(2, '0')
  const text = `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`
  return `${new Date(ms + offset).toISOString().slice(0, -1)}${offset < 0 ? '-' : '+'}${text}`
}
