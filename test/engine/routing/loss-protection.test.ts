/** Least cost by the expected call, and loss protection, as routing decides them. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { costMicros } from '../../../engine/charging/pricing/price.ts'
import type { Sales } from '../../../engine/routing/loss-guard.ts'
import type { CarrierPrice, PassedOver } from '../../../engine/routing/outbound-routes.ts'
import type { LossProtection, Tariff } from '../../../schema/contracts/tariff.ts'
import { type LossTerms, readLeastMargin } from '../../../schema/rules/loss-protection.ts'
import { outboundRoute, routingOver, sampleCarrier } from './samples.ts'

/** Amounts in units of the currency; increments as `first/further`. */
function tariffOf(minute: number, fee = 0, increments = '1/1', more: Partial<Tariff> = {}): Tariff {
  const [first = 1, further = 1] = increments.split('/').map(Number)
  const micros = Math.round(minute * 1_000_000)
  return {
    prefix: '49',
    currency: 'USD',
    connectFeeMicros: Math.round(fee * 1_000_000),
    firstIncrementSeconds: first,
    firstRatePerMinuteMicros: micros,
    incrementSeconds: further,
    ratePerMinuteMicros: micros,
    decimals: 6,
    ...more,
  }
}

type Prices = readonly (Tariff | undefined)[]

interface World {
  /** By carrier, from 1 on; undefined: its list has no price. */
  readonly prices: Prices
  readonly seconds?: number
  readonly sale?: Tariff | undefined
  readonly terms?: readonly LossTerms[]
  readonly routes?: readonly Parameters<typeof outboundRoute>[1][]
  /** Carriers without a price list. */
  readonly unlisted?: readonly number[]
  readonly owners?: Readonly<Record<number, number>>
  readonly hasPrices?: boolean
  readonly number?: string
}

function ask(world: World) {
  const { prices, seconds = 60, sale, terms = [], unlisted = [], hasPrices = true } = world
  const ids = prices.map((_, index) => index + 1)
  const sales: Sales = { termsOf: () => terms, tariffOf: () => sale, isBlocked: () => false }
  const passed: PassedOver[] = []
  const carriers = ids.map((id) =>
    sampleCarrier(id, {
      ratePlanId: unlisted.includes(id) ? null : id,
      tenantId: world.owners?.[id] ?? null,
    }),
  )
  const outboundRoutes = ids.map((id) =>
    outboundRoute(id, { carrierId: id, mode: 'lcr', ...world.routes?.[id - 1] }),
  )
  const priced = (planId: number): CarrierPrice | undefined => {
    const tariff = prices[planId - 1]
    return tariff && { tariff, isBlocked: false }
  }
  const { routing } = routingOver(
    { carriers, outboundRoutes },
    {
      ...(hasPrices ? { carrierPrice: priced } : { carrierPrice: undefined }),
      ...(hasPrices && { sales }),
      expectedSeconds: () => seconds,
      random: () => 0.5,
    },
  )
  const search = { random: () => 0.5, passOver: (each: PassedOver) => void passed.push(each) }
  const { number = '4930' } = world
  const decision = routing.outboundCandidates(7, number, 3, search)
  const gateways = decision.kind === 'gateways' ? decision.gateways : []
  return {
    order: gateways.map(({ carrierId }) => carrierId),
    kind: decision.kind,
    gateways,
    passed: passed.map(({ carrierId, why }) => [carrierId, why]),
  }
}

const bySecond = tariffOf(0.06)
const byMinute = tariffOf(0.05, 0, '60/60')
const withFee = tariffOf(0.01, 0.03)

test.each([
  ['a short call: neither a fee nor a whole minute', 6, [1, 3, 2]],
  ['a minute', 60, [3, 2, 1]],
  ['a second into the next minute', 61, [3, 1, 2]],
  ['a long call', 3_600, [3, 2, 1]],
])('%s: carriers stand in the order of what it costs', (_, seconds, order) => {
  expect(ask({ prices: [bySecond, byMinute, withFee], seconds }).order).toEqual(order)
})

test('equal costs keep the order of priority', () => {
  const routes = [{ priority: 3 }, { priority: 1 }, { priority: 2 }]
  expect(ask({ prices: [bySecond, bySecond, bySecond], routes }).order).toEqual([2, 3, 1])
})

test('a list without a price for the number leaves its carrier out; without a list it is last', () => {
  const found = ask({ prices: [undefined, undefined, bySecond], unlisted: [1] })
  expect(found.order).toEqual([3, 1])
  expect(found.passed).toEqual([[2, 'no_carrier_price']])
  expect(ask({ prices: [undefined, undefined] }).kind).toBe('unpriced')
})

test('a static route takes a carrier without a price', () => {
  expect(ask({ prices: [undefined], routes: [{ mode: 'static' }] }).order).toEqual([1])
})

test('where prices are not known here, no carrier is left out, and nothing is protected', () => {
  const terms = [protection('strict')]
  expect(ask({ prices: [undefined, undefined], hasPrices: false, terms }).order).toEqual([1, 2])
})

const rate = fc.integer({ min: 0, max: 5_000_000 })
const anyTariff = fc.record({
  prefix: fc.constant('49'),
  currency: fc.constant('USD'),
  connectFeeMicros: rate,
  firstIncrementSeconds: fc.integer({ min: 0, max: 120 }),
  firstRatePerMinuteMicros: rate,
  incrementSeconds: fc.integer({ min: 1, max: 120 }),
  ratePerMinuteMicros: rate,
  decimals: fc.integer({ min: 0, max: 6 }),
  rounding: fc.constantFrom('up', 'half_up', 'down'),
}) as fc.Arbitrary<Tariff>

/** The exact sum in sixtieths of a millionth, second by second, rounded by whole numbers. */
function exactly(tariff: Tariff, seconds: number): bigint {
  let sum = 60n * BigInt(tariff.connectFeeMicros)
  sum += BigInt(tariff.firstIncrementSeconds) * BigInt(tariff.firstRatePerMinuteMicros)
  for (let paid = tariff.firstIncrementSeconds; paid < seconds; paid += tariff.incrementSeconds)
    sum += BigInt(tariff.incrementSeconds) * BigInt(tariff.ratePerMinuteMicros)
  const quantum = 60n * 10n ** BigInt(6 - tariff.decimals)
  const rest = sum % quantum
  const isUp =
    tariff.rounding === 'up' ? rest > 0n : tariff.rounding === 'half_up' && 2n * rest >= quantum
  return sum - rest + (isUp ? quantum : 0n)
}

test('the order is that of an exact computation, for any prices and durations', () => {
  fc.assert(
    fc.property(
      fc.array(anyTariff, { minLength: 2, maxLength: 6 }),
      fc.integer({ min: 1, max: 4_000 }),
      (prices, seconds) => {
        const { order } = ask({ prices, seconds })
        const costs = prices.map((tariff) => exactly(tariff, seconds))
        const expected = prices
          .map((_, index) => index + 1)
          .toSorted((one, other) => {
            const [a = 0n, b = 0n] = [costs[one - 1], costs[other - 1]]
            return a < b ? -1 : a > b ? 1 : 0
          })
        expect(order).toEqual(expected)
      },
    ),
    { numRuns: 300 },
  )
})

const protection = (
  kind: LossProtection,
  margin = '0',
  tenantId: number | null = null,
): LossTerms => {
  const leastMargin = readLeastMargin(margin)
  if (leastMargin === undefined) throw new Error(`${margin} is no margin`)
  return { protection: kind, leastMargin, tenantId }
}

/** One carrier for 0.05, two for more. */
const carriers = [tariffOf(0.05), tariffOf(0.0901), tariffOf(0.12)]
const sale = tariffOf(0.09)

test.each([
  ['nothing', [], [1, 2, 3]],
  ['never', [protection('never')], [1, 2, 3]],
  ['refuse: what costs more than it earns', [protection('refuse')], [1]],
  ['refuse with an amount', [protection('refuse', '0.04')], [1]],
  ['refuse with a larger amount', [protection('refuse', '0.040001')], []],
  ['refuse with a percentage', [protection('refuse', '44.44%')], [1]],
  ['refuse with a larger percentage', [protection('refuse', '44.45%')], []],
  ['warn', [protection('warn')], [1, 2, 3]],
  [
    'of the customer before that of the plan',
    [protection('never'), protection('refuse')],
    [1, 2, 3],
  ],
  ['of the customer, stricter', [protection('refuse'), protection('never')], [1]],
])('protection that says %s', (_, terms, order) => {
  expect(ask({ prices: carriers, sale, terms }).order).toEqual(order)
})

test('equal price and cost is no loss; a millionth more is', () => {
  const terms = [protection('refuse')]
  expect(ask({ prices: [tariffOf(0.09)], sale, terms }).order).toEqual([1])
  expect(ask({ prices: [tariffOf(0.090_001)], sale, terms }).kind).toBe('unprofitable')
})

test('a route goes before customer and plan, in both directions', () => {
  const routes = [{}, { lossTerms: protection('never') }, {}]
  const found = ask({ prices: carriers, sale, terms: [protection('refuse')], routes })
  expect(found.order).toEqual([1, 2])
  expect(found.passed).toEqual([[3, 'below_margin']])
  const alone = [{}, {}, { lossTerms: protection('refuse') }]
  expect(ask({ prices: carriers, sale, routes: alone }).order).toEqual([1, 2])
})

test('a margin is of the expected call: a fee is a loss in a short call, and none in a long one', () => {
  const terms = [protection('refuse')]
  const prices = [tariffOf(0.06, 0.02)]
  expect(ask({ prices, sale, terms, seconds: 30 }).kind).toBe('unprofitable')
  expect(ask({ prices, sale, terms, seconds: 60 }).order).toEqual([1])
})

test('an amount is per minute of the expected call', () => {
  const prices = [tariffOf(0.07)]
  const under = (margin: string, seconds: number) =>
    ask({ prices, sale, terms: [protection('refuse', margin)], seconds }).kind
  expect(under('0.02', 30)).toBe('gateways')
  expect(under('0.02', 600)).toBe('gateways')
  expect(under('0.021', 30)).toBe('unprofitable')
  expect(under('0.021', 600)).toBe('unprofitable')
})

test.each([
  ['a list without the number', {}],
  ['no list', { unlisted: [1] }],
  ['another currency', { prices: [tariffOf(0.01, 0, '1/1', { currency: 'EUR' })] }],
])('%s: only strict refuses what is not known', (_, more) => {
  const unknown = { prices: [undefined], sale, routes: [{ mode: 'static' as const }], ...more }
  expect(ask({ ...unknown, terms: [protection('refuse')] }).order).toEqual([1])
  const strict = ask({ ...unknown, terms: [protection('strict')] })
  expect([strict.kind, strict.passed]).toEqual(['unprofitable', [[1, 'below_margin']]])
})

test('what is sold by no price here is not protected', () => {
  expect(ask({ prices: carriers, terms: [protection('strict')] }).order).toEqual([1, 2, 3])
})

test('a call that is free to the customer, and to us, is no loss, whatever part is wanted', () => {
  const free = tariffOf(0)
  expect(ask({ prices: [free], sale: free, terms: [protection('refuse', '50%')] }).order).toEqual([
    1,
  ])
})

test('an emergency call is never refused', () => {
  const routes = carriers.map((_, index) => ({
    prefix: '112',
    isEmergency: true,
    priority: index + 1,
    lossTerms: protection('strict'),
  }))
  const terms = [protection('strict')]
  expect(ask({ prices: carriers, sale, routes, terms, number: '112' }).order).toEqual([1, 2, 3])
})

test('a carrier whose price is blocked takes an emergency call, too', () => {
  const { routing } = routingOver(
    {
      carriers: [sampleCarrier(1, { ratePlanId: 1 })],
      outboundRoutes: [
        outboundRoute(1, { carrierId: 1, mode: 'lcr', prefix: '112', isEmergency: true }),
        outboundRoute(2, { carrierId: 1, mode: 'lcr' }),
      ],
    },
    { carrierPrice: () => ({ tariff: sale, isBlocked: true }) },
  )
  expect(routing.outboundCandidates(7, '112')).toMatchObject({ isEmergency: true })
  expect(routing.outboundCandidates(7, '4930').kind).toBe('unavailable')
})

test('a warning goes with the gateway, and says what is lost', () => {
  const [first, second] = ask({ prices: carriers, sale, terms: [protection('warn')] }).gateways
  expect(first?.profit).toBeUndefined()
  expect(second?.profit).toMatchObject({
    seconds: 60,
    saleMicros: 90_000,
    costMicros: 90_100,
    marginMicros: -100,
    verdict: 'warned',
    judgedBy: { tenantId: null },
  })
})

// Tenant 3 calls by carrier 1 of its own, and by carrier 2 of the platform; both cost too much.
const two = { prices: [tariffOf(0.5), tariffOf(0.6)], sale, owners: { 1: 3 } }
const three = [{ tenantId: 3 }, { tenantId: 3 }]

test('a tenant protects calls by its own carriers alone: it learns no price of the platform', () => {
  expect(ask({ ...two, routes: three, terms: [protection('refuse', '0', 3)] }).order).toEqual([2])
  expect(ask({ ...two, routes: three, terms: [protection('strict', '0', 3)] }).kind).toBe(
    'unprofitable',
  )
})

test('neither the platform nor a tenant lifts the protection of the other', () => {
  const both = [protection('never', '0', 3), protection('refuse')]
  expect(ask({ ...two, routes: three, terms: both }).kind).toBe('unprofitable')
  const other = [protection('refuse', '0', 3), protection('never')]
  expect(ask({ ...two, routes: three, terms: other }).order).toEqual([2])
})

test('the price of a call is asked for only where something is said about losses', () => {
  let asked = 0
  const { routing } = routingOver(
    {
      carriers: [sampleCarrier(1)],
      outboundRoutes: [
        outboundRoute(1, { carrierId: 1 }),
        outboundRoute(2, { carrierId: 1, prefix: '44', lossTerms: protection('refuse') }),
      ],
    },
    {
      sales: {
        isBlocked: () => false,
        termsOf: () => [],
        tariffOf: () => {
          asked += 1
          return sale
        },
      },
      expectedSeconds: () => {
        asked += 1
        return 60
      },
      costOf: (...each) => {
        asked += 1
        return costMicros(...each)
      },
    },
  )
  expect(routing.outboundCandidates(7, '4930').kind).toBe('gateways')
  expect(asked).toBe(0)
})
