import { expect, test } from 'vitest'
import { LossNotices } from '../../../engine/call/loss-notices.ts'
import type { OutgoingEvent } from '../../../schema/contracts/engine.ts'
import type { ExpectedProfit } from '../../../schema/contracts/tariff.ts'
import { gateway } from '../../support/gateway.ts'

const loss = (more: Partial<ExpectedProfit> = {}): ExpectedProfit => ({
  seconds: 90,
  costMicros: 120_000,
  costCurrency: 'USD',
  saleMicros: 90_000,
  saleCurrency: 'USD',
  salePrefix: '49',
  marginMicros: -30_000,
  carrierTenantId: null,
  verdict: 'warned',
  judgedBy: { tenantId: null },
  ...more,
})

function open() {
  const clock = { now: Date.UTC(2026, 0, 1, 12) }
  const told: OutgoingEvent[] = []
  const logged: unknown[] = []
  const notices = new LossNotices({
    now: () => clock.now,
    log: (...line) => void logged.push(line),
    announce: (event) => void told.push(event),
  })
  const answer = (customerId: number | null, profit = loss(), carrierId = 9) =>
    notices.answered(
      { callUuid: 'u', calledNumber: '4930555', customerId },
      gateway({ carrierId, carrierName: `carrier ${carrierId}`, profit }),
    )
  return { clock, told, logged, notices, answer }
}

test('a loss is told once a day for a customer, a price and a carrier', () => {
  const { clock, told, logged, answer } = open()
  answer(7)
  answer(7)
  expect(told).toEqual([
    {
      type: 'call.below_margin',
      tenantId: null,
      data: {
        call_uuid: 'u',
        customer_id: 7,
        carrier: 'carrier 9',
        destination_number: '4930555',
        rate_prefix: '49',
        expected_seconds: 90,
        expected_price_exact: '0.09',
        expected_cost_exact: '0.12',
        expected_margin_exact: '-0.03',
        currency: 'USD',
        at: '2026-01-01T12:00:00.000Z',
      },
    },
  ])
  answer(8)
  answer(7, loss({ salePrefix: '4915' }))
  answer(7, loss(), 10)
  expect([told.length, logged.length]).toEqual([4, 4])
  // The next day in UTC.
  clock.now += 12 * 3_600_000
  answer(7)
  expect(told).toHaveLength(5)
})

test('the owner of the protection is told, and nobody of a call that is not warned of', () => {
  const { told, answer } = open()
  answer(7, loss({ judgedBy: { tenantId: 3 } }))
  answer(7, loss({ verdict: 'kept', judgedBy: null }))
  answer(null)
  expect(told.map(({ tenantId }) => tenantId)).toEqual([3])
})

test('what is remembered is bounded: the oldest is forgotten', () => {
  const { notices, answer } = open()
  for (let id = 1; id <= 1_005; id += 1) answer(id)
  answer(6)
  const troubles = notices.troubles()
  expect(troubles).toHaveLength(1_000)
  expect([troubles[0]?.customerId, troubles.at(-1)]).toMatchObject([7, { customerId: 6, calls: 2 }])
})
