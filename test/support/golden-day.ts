/**
 * A day of generated calls through the settlement, and what they come to by arithmetic of its own:
 * whole fractions as BigInt, out of the terms of the plans, and not out of a table in memory.
 */
import type { CallRecord } from '../../schema/contracts/call-record.ts'
import type { Rounding } from '../../schema/contracts/tariff.ts'
import { carrierCostOf } from '../../engine/charging/pricing/carrier-cost.ts'
import { margins } from '../../control/reports/margins.ts'
import { marginGroupings } from '../../control/reports/margin-sums.ts'
import { answeredCall } from './report-rig.ts'
import { openResources } from './resources.ts'
import { seededRandom } from './seeded-random.ts'
import { placeOf, resultOf, rollUpAt } from './summed-calls.ts'
import { readRows } from './stored.ts'

const DAY_MS = 86_400_000

interface Terms {
  readonly fee: number
  readonly first: number
  readonly increment: number
  readonly perMinute: number
}

interface Plan {
  readonly name: string
  readonly rounding: Rounding
  readonly decimals: number
  readonly rates: Readonly<Record<string, Terms>>
}

/** Sums of a group: calls, charged seconds, losses, and micro-units. */
interface Sum {
  calls: number
  billsec: number
  losses: number
  sold: bigint
  bought: bigint
}

const prefixes = ['44', '4479', '4930', '49', '331', '1']

function planOf(name: string, random: () => number): Plan {
  const one = <T>(...values: readonly T[]): T => values[Math.floor(random() * values.length)] as T
  const terms = (): Terms => ({
    fee: one(0, 0, 5_000, 123_457),
    first: one(1, 6, 30, 60),
    increment: one(1, 6, 60),
    perMinute: 1 + Math.floor(random() * 200_000),
  })
  return {
    name,
    rounding: one('up', 'half_up', 'down'),
    decimals: one(2, 4, 6),
    rates: Object.fromEntries(prefixes.map((prefix) => [prefix, terms()])),
  }
}

/** The exact price, rounded once. */
function priceBy(plan: Plan, number: string, seconds: number): bigint {
  const prefix = prefixes
    .filter((each) => number.startsWith(each))
    .toSorted((one, other) => other.length - one.length)[0]
  const terms = plan.rates[prefix ?? '']
  if (terms === undefined) throw new Error(`${plan.name} has no price for ${number}`)
  const beyond = Math.max(0, seconds - terms.first)
  const charged = terms.first + Math.ceil(beyond / terms.increment) * terms.increment
  const sixtieths = BigInt(terms.fee) * 60n + BigInt(charged) * BigInt(terms.perMinute)
  const unit = 60n * 10n ** BigInt(6 - plan.decimals)
  const added = { up: unit - 1n, half_up: unit / 2n, down: 0n }[plan.rounding]
  return ((sixtieths + added) / unit) * (unit / 60n)
}

const money = (micros: number): string => (micros / 1_000_000).toFixed(6)

export async function goldenDay(calls: number, seed: number) {
  const random = seededRandom(seed)
  const rig = await openResources()
  const make = async (path: string, body: object): Promise<number> => {
    const answer = await rig.call('POST', path, body)
    if (answer.status !== 201) throw new Error(`${path}: ${answer.text}`)
    return answer.data<{ id: number }>().id
  }
  const addPlan = async (name: string) => {
    const plan = planOf(name, random)
    const { rounding, decimals } = plan
    const id = await make('/rate-plans', { name, currency: 'USD', rounding, decimals })
    for (const [prefix, terms] of Object.entries(plan.rates))
      await make('/rates', {
        rate_plan: name,
        prefix,
        connect_fee: money(terms.fee),
        first_increment: terms.first,
        increment: terms.increment,
        rate_per_minute: money(terms.perMinute),
      })
    return { ...plan, id }
  }
  const sold = [await addPlan('retail'), await addPlan('wholesale')]
  const bought = [await addPlan('cost of north'), await addPlan('cost of south')]
  const customers: number[] = []
  for (const { name } of sold)
    customers.push(
      await make('/customers', {
        name: `of ${name}`,
        rate_plan: name,
        currency: 'USD',
        balance: '1000000.00',
      }),
    )
  const expected = new Map<string, Sum>()
  const add = (key: string, seconds: number, price: bigint, cost: bigint): void => {
    const none = { calls: 0, billsec: 0, losses: 0, sold: 0n, bought: 0n }
    const sum = expected.get(key) ?? none
    expected.set(key, sum)
    sum.calls += 1
    sum.billsec += seconds
    sum.losses += price < cost ? 1 : 0
    sum.sold += price
    sum.bought += cost
  }
  const start = answeredCall.startedAt - (answeredCall.startedAt % DAY_MS)
  let waiting: Promise<unknown>[] = []
  const settle = async (): Promise<void> => {
    rig.flushCalls()
    await Promise.all(waiting)
    waiting = []
  }
  for (let call = 0; call < calls; call += 1) {
    const who = Math.floor(random() * 2)
    const by = Math.floor(random() * 2)
    const prefix = prefixes[Math.floor(random() * prefixes.length)] ?? ''
    const number = prefix + String(1_000_000 + Math.floor(random() * 8_999_999))
    const seconds = 1 + Math.floor(random() * random() * 3_000)
    const startedAt = start + Math.floor((call * DAY_MS) / calls)
    const [plan, cost] = [sold[who], bought[by]]
    if (plan === undefined || cost === undefined) throw new Error('there is no plan')
    const rate = rig.ocs.rateFor(cost.id, number, startedAt)
    const carrierCost = carrierCostOf(rate && { tariff: rate.tariff, tenantId: null }, seconds)
    const carrier = by === 0 ? 'north' : 'south'
    const record: CallRecord = {
      ...answeredCall,
      callUuid: `golden-${call}`,
      direction: 'outbound',
      calledNumber: number,
      carrier,
      attempts: [],
      customerId: customers[who] ?? null,
      ratePrefix: rig.ocs.rateFor(plan.id, number, startedAt)?.tariff.prefix ?? null,
      startedAt,
      answeredAt: startedAt + 1_000,
      endedAt: startedAt + 1_000 + seconds * 1_000,
      billsec: seconds,
      carrierCost,
    }
    waiting.push(rig.ocs.report(record))
    const [price, taken] = [priceBy(plan, number, seconds), priceBy(cost, number, seconds)]
    for (const key of [`carrier ${carrier}`, `customer ${customers[who]}`, 'day 2026-01-01'])
      add(key, seconds, price, taken)
    add(`destination ${number.slice(0, 4)}`, seconds, price, taken)
    if (waiting.length >= 1_000) await settle()
  }
  await settle()
  const place = placeOf(rig.store)
  const reported = async () => {
    const found = new Map<string, object>()
    for (const groupBy of marginGroupings) {
      const period = { from: start, before: start + DAY_MS }
      const asked = { tenantId: null, isOwn: false, ...period, groupBy, limit: 20_000, offset: 0 }
      for (const group of (await resultOf(margins(place, asked))).groups)
        found.set(`${groupBy} ${group.group}`, {
          calls: group.calls,
          billsec: group.billsec,
          losses: group.losses,
          sold: microsOf(group.revenue),
          bought: microsOf(group.carrier_cost),
          margin: microsOf(group.margin ?? ''),
        })
    }
    return found
  }
  const [stored] = await readRows(
    rig.store,
    `SELECT CAST(sum(cost_micros) AS TEXT) AS sold, CAST(sum(carrier_cost_micros) AS TEXT) AS bought
      FROM cdr`,
  )
  const beforeSums = await reported()
  while ((await rollUpAt(place)) > 0) continue
  const fromSums = await reported()
  const balances = await readRows(
    rig.store,
    'SELECT CAST(sum(balance_micros) AS TEXT) AS left FROM wallet',
  )
  await rig.close()
  return {
    expected: new Map(
      [...expected].map(([key, sum]) => [key, { ...sum, margin: sum.sold - sum.bought }]),
    ),
    beforeSums,
    fromSums,
    stored,
    left: BigInt(String(balances[0]?.['left'])),
  }
}

/** `-0.0641` is -64100 micro-units. */
function microsOf(text: string): bigint {
  const [units = '', fraction = ''] = text.split('.')
  return BigInt(units + fraction.padEnd(6, '0'))
}
