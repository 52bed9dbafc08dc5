import fc from 'fast-check'
import { expect, test } from 'vitest'
import { costMicros, decimalText } from '../../../../../control/console/web/screens/live-calls.ts'
import { priceView } from '../../../../../control/calls/active-call-view.ts'
import { costMicros as charged } from '../../../../../engine/charging/pricing/price.ts'
import { moneyToDecimal } from '../../../../../schema/columns.ts'

const seconds = fc.integer({ min: 1, max: 3_600 })
const rate = fc.integer({ min: 0, max: 5_000_000 })
const tariff = fc.record({
  prefix: fc.constant('49'),
  currency: fc.constant('USD'),
  connectFeeMicros: rate,
  firstIncrementSeconds: seconds,
  firstRatePerMinuteMicros: rate,
  incrementSeconds: seconds,
  ratePerMinuteMicros: rate,
  decimals: fc.integer({ min: 0, max: 6 }),
})

test('what the page shows is what the server would charge, for any price and duration', () => {
  fc.assert(
    fc.property(tariff, fc.integer({ min: 0, max: 100_000 }), (price, talked) => {
      const cost = costMicros(priceView(price), talked)
      expect(cost).toBe(BigInt(charged(price, talked)))
      expect(decimalText(cost)).toBe(moneyToDecimal(charged(price, talked)))
    }),
  )
})
