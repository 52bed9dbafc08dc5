import type { LookupAddress } from 'node:dns'
import { expect, test } from 'vitest'
import { guardedLookup, problemOfUrl } from '../../../schema/net/http-target.ts'
import { isPublicAddress } from '../../../schema/net/ip-address.ts'

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
    const lookup = guardedLookup({ resolve: () => Promise.resolve(addresses), allowPrivate })
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
  const lookup = guardedLookup({
    resolve: () => Promise.reject(new Error('ENOTFOUND')),
    allowPrivate: false,
  })
  const error = await new Promise((resolve) => lookup('x', { all: true }, resolve))
  expect(error).toMatchObject({ message: 'ENOTFOUND' })
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
