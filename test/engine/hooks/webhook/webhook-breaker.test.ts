import { expect, test } from 'vitest'
import { WebhookBreaker } from '../../../../engine/hooks/webhook/webhook-breaker.ts'

/** A breaker whose receiver has failed ten times at `now`. */
function broken(now: number): WebhookBreaker {
  const breaker = new WebhookBreaker()
  for (let failure = 1; failure <= 10; failure += 1) {
    expect(breaker.admit(now)).toBe(true)
    expect(breaker.failed(now)).toBe(failure === 10)
  }
  return breaker
}

test('after ten failures in a row nobody asks for a second, then one call tries it', () => {
  const breaker = broken(0)
  expect([breaker.admit(0), breaker.admit(999)]).toEqual([false, false])
  expect(breaker.isResting(999)).toBe(true)
  expect([breaker.admit(1_000), breaker.admit(1_000)]).toEqual([true, false])
  breaker.succeeded()
  expect([breaker.admit(1_000), breaker.admit(1_000)]).toEqual([true, true])
})

test('each trial that fails doubles the rest, up to half a minute', () => {
  const breaker = broken(0)
  let now = 1_000
  for (const restMs of [2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
    expect(breaker.admit(now)).toBe(true)
    expect(breaker.failed(now)).toBe(true)
    expect(breaker.admit(now + restMs - 1)).toBe(false)
    now += restMs
  }
})

test('requests that were sent before the rest do not prolong it', () => {
  const breaker = broken(0)
  expect(breaker.failed(500)).toBe(false)
  expect(breaker.admit(1_000)).toBe(true)
})

test('a success in between begins the count anew', () => {
  const breaker = new WebhookBreaker()
  for (let round = 0; round < 5; round += 1) {
    for (let failure = 0; failure < 9; failure += 1) expect(breaker.failed(0)).toBe(false)
    breaker.succeeded()
  }
  expect(breaker.admit(0)).toBe(true)
})

test('a trial that could not be sent leaves the trial to the next call', () => {
  const breaker = broken(0)
  expect(breaker.admit(1_000)).toBe(true)
  breaker.withdrawn()
  expect(breaker.admit(1_000)).toBe(true)
})
