import { expect, test } from 'vitest'
import { UnpricedCalls } from '../../../engine/routing/unpriced-calls.ts'

test('every refusal counts, and a destination is logged once a minute, however many there are', () => {
  let now = 0
  const logged: unknown[] = []
  const calls = new UnpricedCalls({
    tenantNames: { mayReach: () => true },
    routing: () => ({
      gatewayBehind: (uri) => (uri.includes('203.0.113.7') ? 'north' : undefined),
      mayReach: (name) => name === 'carrier.example',
    }),
    now: () => now,
    log: (_level, _message, fields) => void logged.push(fields),
  })
  const destination = 'sip:1900@203.0.113.7'
  for (let count = 0; count < 10; count += 1)
    expect(calls.gatewayBehind(destination, 3)).toBe('north')
  expect(calls.gatewayBehind('sip:192.0.2.1', 3)).toBeUndefined()
  expect(logged).toEqual([{ destination, carrier: 'north' }])
  now += 60_000
  calls.gatewayBehind(destination, 3)
  const target = { address: '203.0.113.7', port: 5_060 }
  expect(calls.mayReach('carrier.example', target)).toBe(true)
  expect(calls.mayReach('alias.example', target)).toBe(false)
  expect(logged.slice(1)).toEqual([
    { destination, carrier: 'north' },
    { destination: 'alias.example', ...target },
  ])
  expect(calls.total).toBe(12)
})
