import { Webhook, WebhookVerificationError } from 'standardwebhooks'
import { expect, test, vi } from 'vitest'
import { newSecret, signatures } from '../../../schema/secrets/webhook-signature.ts'

const id = 'msg_p5jXN8AQM9LWM0D4loKWxJek'

const seconds = 1_614_265_330

const body = '{"test": 2432232314}'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

test("the specification's own example is signed as it says", () => {
  expect(signatures([secret], id, seconds, body)).toBe(
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  )
})

const headers = (signature: string) => ({
  'webhook-id': id,
  'webhook-timestamp': String(seconds),
  'webhook-signature': signature,
})

/** The library looks at the clock. */
function at<T>(time: number, work: () => T): T {
  vi.useFakeTimers({ now: time * 1_000, toFake: ['Date'] })
  try {
    return work()
  } finally {
    vi.useRealTimers()
  }
}

const isAccepted = (payload: string, header: string, time = seconds, key = secret): boolean =>
  at(time, () => {
    try {
      new Webhook(key).verify(payload, headers(header))
      return true
    } catch (error) {
      if (error instanceof WebhookVerificationError) return false
      throw error
    }
  })

test('a library of the standard accepts it, and nothing that is altered, stale or of the future', () => {
  const header = signatures([secret], id, seconds, body)
  expect(isAccepted(body, header)).toBe(true)
  for (let index = 0; index < body.length; index += 1)
    expect(isAccepted(`${body.slice(0, index)}~${body.slice(index + 1)}`, header)).toBe(false)
  expect([
    isAccepted(body, header, seconds + 301),
    isAccepted(body, header, seconds - 301),
  ]).toEqual([false, false])
  expect(isAccepted(body, signatures([secret], 'msg_other', seconds, body))).toBe(false)
})

test('while secrets overlap the receiver may know either of them', () => {
  let seed = 0
  const random = (size: number) => Buffer.alloc(size, (seed += 1))
  const [before, after, foreign] = [newSecret(random), newSecret(random), newSecret(random)]
  const header = signatures([after, before], id, seconds, body)
  expect([before, after, foreign].map((key) => isAccepted(body, header, seconds, key))).toEqual([
    true,
    true,
    false,
  ])
})
