/**
 * Sums of what calls were sold and bought for, by day: how the roll-up of call records makes them.
 * They have the answered calls that a carrier took. The price of another owner's carrier is not for
 * a tenant, so its sums stand apart (`is_own`).
 */
import { type RawBuilder, sql } from 'kysely'
import { DAY_MS } from '../../schema/clock.ts'
import { addedMoney, sumOfMoney } from './money-sums.ts'
import { ALL, memberOf } from './call-filters.ts'
import { hasOwnPrice } from './own-prices.ts'

const marginDimensions = ['customer', 'carrier', 'destination'] as const

export const marginGroupings = [...marginDimensions, 'day'] as const
export type MarginGrouping = (typeof marginGroupings)[number]

/** Whether the sums have a record of `cdr`. */
const isBought = sql.raw<boolean>(`(cdr.disposition = 'ANSWERED' AND (
  cdr.carrier_cost_micros IS NOT NULL
  OR (cdr.direction = 'outbound' AND cdr.carrier IS NOT NULL)))`)

const isOwnCarrier = sql.raw<boolean>('cdr.carrier_tenant_id = cdr.tenant_id')

const figures = {
  losses: `CASE WHEN cdr.currency = cdr.carrier_currency
    AND cdr.cost_micros < cdr.carrier_cost_micros THEN 1 ELSE 0 END`,
  carrier_cost_micros: 'coalesce(cdr.carrier_cost_micros, 0)',
}

/** The same of a row of `cdr_cost_change`, whose amounts have the sign of `records`. */
const changedFigures = {
  losses: `CASE WHEN change.currency = change.carrier_currency
    AND change.records * change.cost_micros < change.records * change.carrier_cost_micros
    THEN change.records ELSE 0 END`,
  carrier_cost_micros: 'coalesce(change.carrier_cost_micros, 0)',
}

const isBoughtChange = sql.raw<boolean>(`(change.records <> 0 AND cdr.disposition = 'ANSWERED' AND (
  change.carrier_cost_micros IS NOT NULL
  OR (cdr.direction = 'outbound' AND cdr.carrier IS NOT NULL)))`)

interface SliceColumn {
  /** The column of `call_sum` that has its type. */
  readonly like: string
  readonly ofRecord: string
  readonly ofChange: string
}

/** Further columns of the slice that is rolled up. */
const sliceColumns: Readonly<Record<string, SliceColumn>> = {
  carrier_currency: {
    like: 'member',
    ofRecord: "coalesce(cdr.carrier_currency, '')",
    ofChange: "coalesce(change.carrier_currency, '')",
  },
  is_own: {
    like: 'calls',
    ofRecord: 'CASE WHEN cdr.carrier_tenant_id = cdr.tenant_id THEN 1 ELSE 0 END',
    ofChange: 'CASE WHEN change.carrier_tenant_id = cdr.tenant_id THEN 1 ELSE 0 END',
  },
  losses: { like: 'calls', ofRecord: figures.losses, ofChange: changedFigures.losses },
  carrier_cost_micros: {
    like: 'cost_micros',
    ofRecord: figures.carrier_cost_micros,
    ofChange: changedFigures.carrier_cost_micros,
  },
}
export const marginColumns = ['is_bought', ...Object.keys(sliceColumns)]

export const marginColumnTypes = [
  'calls AS is_bought',
  ...Object.entries(sliceColumns).map(([name, { like }]) => `${like} AS ${name}`),
].join(', ')

/** Changes of costs by an external OCS are not in them: it has the prices of carriers, too. */
export const marginColumnsOf = (isRecord: boolean) => [
  sql`CASE WHEN ${isRecord ? isBought : isBoughtChange} THEN 1 ELSE 0 END`.as('is_bought'),
  ...Object.entries(sliceColumns).map(([name, { ofRecord, ofChange }]) =>
    sql.raw(isRecord ? ofRecord : ofChange).as(name),
  ),
]

export const createMarginPart =
  'CREATE TEMPORARY TABLE margin_part AS SELECT * FROM margin_sum WHERE 1 = 0'

const keys = 'day, dimension, tenant_id, is_own, member, currency, carrier_currency'
const summed = ['calls', 'billsec', 'losses', 'cost_micros', 'carrier_cost_micros'] as const
const isMoney = (column: string): boolean => column.endsWith('_micros')
const sums = summed
  .map((column) => (isMoney(column) ? sumOfMoney(column) : `sum(${column})`))
  .join(', ')

const memberColumn = {
  customer: `CASE customer_id WHEN 0 THEN '' ELSE CAST(customer_id AS TEXT) END`,
  carrier: 'carrier',
  destination: 'callee_prefix',
} as const

/** A mark before the currency says that the price is the platform's. */
const groupByTenant = marginDimensions.map(
  (dimension) => `INSERT INTO margin_part (${keys}, ${summed.join(', ')})
    SELECT day, '${dimension}', tenant_id,
      CASE WHEN is_own = 1 AND substr(currency, 1, 1) <> '*' THEN 1 ELSE 0 END,
      ${memberColumn[dimension]},
      CASE substr(currency, 1, 1) WHEN '*' THEN substr(currency, 2) ELSE currency END,
      carrier_currency, ${sums}
    FROM call_slice WHERE is_bought = 1 GROUP BY 1, 2, 3, 4, 5, 6, 7`,
)

/** The dimension with sums of all tenants, too: a destination has calls of many. */
export const hasSumsOfAll = (dimension: string): boolean => dimension === 'destination'

export const groupMargins: readonly string[] = [
  ...groupByTenant,
  ...marginDimensions.filter(hasSumsOfAll).map(
    (dimension) => `INSERT INTO margin_part (${keys}, ${summed.join(', ')})
      SELECT day, dimension, ${ALL}, 0, member, currency, carrier_currency, ${sums}
      FROM margin_part WHERE dimension = '${dimension}' GROUP BY 1, 2, 3, 4, 5, 6, 7`,
  ),
]

export const addMargins = `INSERT INTO margin_sum (${keys}, ${summed.join(', ')})
  SELECT ${keys}, ${summed.join(', ')} FROM margin_part WHERE 1 = 1
  ON CONFLICT (${keys}) DO UPDATE SET ${summed
    .map((column) => {
      const [own, other] = [`margin_sum.${column}`, `excluded.${column}`]
      return `${column} = ${isMoney(column) ? addedMoney(own, other) : `${own} + ${other}`}`
    })
    .join(', ')}`

const moneyText = (micros: string) => sql.raw<string>(`CAST(${sumOfMoney(micros)} AS TEXT)`)

/** The same of records that are not in the sums yet, for a statement on `cdr`. */
export const recordMargins = {
  isBought,
  isOwn: sql<boolean>`${isOwnCarrier} AND ${hasOwnPrice}`,
  member: {
    customer: memberOf.customer,
    carrier: memberOf.carrier,
    destination: memberOf.callee_prefix,
    day: sql<string>`CAST(cdr.start_stamp - cdr.start_stamp % ${sql.lit(DAY_MS)} AS TEXT)`,
  } satisfies Record<MarginGrouping, RawBuilder<string>>,
  sums: [
    sql<number>`count(*)`.as('calls'),
    sql<number>`sum(cdr.billsec)`.as('billsec'),
    sql.raw<number>(`sum(${figures.losses})`).as('losses'),
    moneyText('cdr.cost_micros').as('sold'),
    moneyText(figures.carrier_cost_micros).as('bought'),
  ],
}

/** The same of changes of records that the sums have, for a statement on both tables. */
export const changedMargins = {
  isBought: isBoughtChange,
  isOwn: sql<boolean>`change.carrier_tenant_id = cdr.tenant_id AND ${hasOwnPrice}`,
  sums: [
    sql<number>`sum(change.records)`.as('calls'),
    sql<number>`sum(change.records * cdr.billsec)`.as('billsec'),
    sql.raw<number>(`sum(${changedFigures.losses})`).as('losses'),
    sql<string>`CAST(sum(change.cost_micros) AS TEXT)`.as('sold'),
    sql.raw<string>(`CAST(sum(${changedFigures.carrier_cost_micros}) AS TEXT)`).as('bought'),
  ],
}

/** Figures of rows of `margin_sum`. */
export const summedMargins = [
  sql<number>`sum(calls)`.as('calls'),
  sql<number>`sum(billsec)`.as('billsec'),
  sql<number>`sum(losses)`.as('losses'),
  moneyText('cost_micros').as('sold'),
  moneyText('carrier_cost_micros').as('bought'),
]
