import type { LookupAddress } from 'node:dns'
import { expect, test, vi } from 'vitest'
import { guardedLookup, problemOfUrl } from '../../../control/webhooks/sender.ts'
import { isPublicAddress } from '../../../schema/net/ip-address.ts'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'
import { newSecret, signatures } from '../../../control/webhooks/endpoint-store.ts'

test.each([
  '127.0.0.1',
  '127.255.255.254',
  '10.0.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '169.254.169.254',
  '100.64.0.1',
  '0.0.0.0',
  '192.0.2.1',
  '198.18.0.1',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::ffff:127.0.0.1',
  '::ffff:8.8.8.8',
  'fe80::1',
  'fe80::1%eth0',
  'fc00::1',
  'fd12::1',
  'ff02::1',
  '64:ff9b::7f00:1',
  '2001::1',
  '2001:db8::1',
  '2002:7f00:1::',
  '',
  'localhost',
  '1',
  '1.2.3',
])('%j is no public address', (address) => {
  expect(isPublicAddress(address)).toBe(false)
})

test.each(['8.8.8.8', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '2a00:1450::1'])(
  '%s is a public address',
  (address) => {
    expect(isPublicAddress(address)).toBe(true)
  },
)

test.each([
  ['https://hooks.example.com/a?b=c', undefined],
  ['http://8.8.8.8:8080/', undefined],
  ['https://127.0.0.1/', 'must not be a private or local address'],
  ['https://0x7f.1/', 'must not be a private or local address'],
  ['https://2130706433/', 'must not be a private or local address'],
  ['https://[::1]:443/', 'must not be a private or local address'],
  ['https://[::ffff:10.0.0.1]/', 'must not be a private or local address'],
  ['https://localhost/', 'must not be a private or local address'],
  ['https://LOCALHOST./', 'must not be a private or local address'],
  ['https://db.internal/', 'must not be a private or local address'],
  ['ftp://hooks.example.com/', 'must be an http or https URL'],
  ['file:///etc/passwd', 'must be an http or https URL'],
  ['https://user:pass@hooks.example.com/', 'must not hold a user name or password'],
  ['https://hooks.example.com/#x', 'must not have a fragment'],
  ['nonsense', 'must be a URL'],
])('an endpoint at %s: %s', (url, problem) => {
  expect(problemOfUrl(url, false)).toBe(problem)
})

test('inside targets are allowed where the setting says so, other faults never', () => {
  expect(problemOfUrl('http://127.0.0.1:8080/', true)).toBeUndefined()
  expect(problemOfUrl('ftp://127.0.0.1/', true)).toBe('must be an http or https URL')
})

const lookUp = (answers: readonly string[], allowPrivate = false, all = true) =>
  new Promise<unknown>((resolve) => {
    const addresses = answers.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    const lookup = guardedLookup(() => Promise.resolve(addresses), allowPrivate)
    lookup('hooks.example.com', { all }, (error, address: string | LookupAddress[]) =>
      resolve(error ?? address),
    )
  })

test('a name is judged by what it means at the moment of the connection', async () => {
  expect(await lookUp(['8.8.8.8', '2606:4700::1111'])).toEqual([
    { address: '8.8.8.8', family: 4 },
    { address: '2606:4700::1111', family: 6 },
  ])
  expect(await lookUp(['8.8.8.8'], false, false)).toBe('8.8.8.8')
  for (const answers of [['10.0.0.1'], ['8.8.8.8', '127.0.0.1'], ['::1'], []])
    expect(await lookUp(answers)).toBeInstanceOf(Error)
  expect(await lookUp(['10.0.0.1'], true)).toEqual([{ address: '10.0.0.1', family: 4 }])
})

test('a name that cannot be resolved is an error of the connection', async () => {
  const lookup = guardedLookup(() => Promise.reject(new Error('ENOTFOUND')), false)
  const error = await new Promise((resolve) => lookup('x', { all: true }, resolve))
  expect(error).toMatchObject({ message: 'ENOTFOUND' })
})

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

test.each(['http://224.0.0.1/', 'http://0.0.0.0:8080/', 'http://[::]/', 'http://255.255.255.255/'])(
  'nobody may write %s, also where receivers may be private: it is no single host',
  (url) => {
    const problem = 'must not be a multicast, broadcast or unspecified address'
    expect([problemOfUrl(url, true), problemOfUrl(url, false)]).toEqual([problem, problem])
  },
)

test('a name that leads to no single host is not called, also where receivers may be private', async () => {
  expect(await lookUp(['10.0.0.1', '224.0.0.1'], true)).toMatchObject({
    message: 'the target is not a single host',
  })
})
