import { expect, test } from 'vitest'
import { openControl } from '../../support/control.ts'
import { readColumn, readValue } from '../../support/stored.ts'

const proxies = ['10.0.0.0/8', '2001:db8:ffff::/48']
const control = await openControl({ trustedProxies: proxies })
const token = await control.key()

/** The audit trail's words about who asked. */
async function addressOf(from: string, headers: Record<string, string>): Promise<unknown> {
  await control.request('/api/v1/application-keys', { method: 'POST', from, headers, token })
  const query = 'SELECT address FROM audit_entry ORDER BY id DESC LIMIT 1'
  return readValue(control.store, query)
}

const proxy = '10.0.0.1'

test.each([
  ['the one address it lists', '192.0.2.7', '192.0.2.7'],
  ['the rightmost that is no proxy', '203.0.113.9, 192.0.2.7, 10.9.9.9', '192.0.2.7'],
  ['not what the client wrote in front', '127.0.0.1,192.0.2.7', '192.0.2.7'],
  ['the proxy itself where there is no address', 'unknown', proxy],
  ['the last known where the list turns unreadable', '192.0.2.7, nonsense, 10.9.9.9', '10.9.9.9'],
  ['the first of a list of proxies only', '10.3.3.3, 10.9.9.9', '10.3.3.3'],
  ['an address with a port', '192.0.2.7:4711', '192.0.2.7'],
  ['an IPv6 address', '2001:db8::7, 2001:db8:ffff::1', '2001:db8::7'],
  ['an IPv6 address with a port', '[2001:db8::7]:4711', '2001:db8::7'],
  ['a mapped address as what it is', '::ffff:192.0.2.7', '192.0.2.7'],
  ['the proxy, for an empty list', '', proxy],
  ['no more than sixteen proxies in a row', `192.0.2.7${', 10.1.1.1'.repeat(16)}`, '10.1.1.1'],
])('of X-Forwarded-For of a trusted proxy counts %s', async (_, list, address) => {
  expect(await addressOf(proxy, { 'x-forwarded-for': list })).toBe(address)
})

test.each([
  ['for=192.0.2.7;proto=https;by=10.0.0.1', '192.0.2.7'],
  ['For="192.0.2.7:4711"', '192.0.2.7'],
  ['proto=http; for="[2001:db8::7]:4711"', '2001:db8::7'],
  ['for=203.0.113.9, for=192.0.2.7, for=10.9.9.9', '192.0.2.7'],
  ['for="_hidden, for=203.0.113.9", for=192.0.2.7', '192.0.2.7'],
  ['for=_hidden', proxy],
  ['by=192.0.2.7', proxy],
])('of Forwarded of a trusted proxy counts the same: %s', async (list, address) => {
  expect(await addressOf(proxy, { forwarded: list })).toBe(address)
})

test('of two headers that disagree neither is trusted: one of them is the client’s', async () => {
  const agreeing = { 'x-forwarded-for': '192.0.2.7', forwarded: 'for=192.0.2.7' }
  expect(await addressOf(proxy, agreeing)).toBe('192.0.2.7')
  expect(await addressOf(proxy, { ...agreeing, forwarded: 'for=127.0.0.1' })).toBe(proxy)
})

test('the headers of an untrusted peer are ignored', async () => {
  const headers = { 'x-forwarded-for': '127.0.0.1', forwarded: 'for=127.0.0.1' }
  expect(await addressOf('192.0.2.1', headers)).toBe('192.0.2.1')
  const without = await openControl()
  const options = { method: 'POST', token: await without.key(), from: proxy, headers }
  await without.request('/api/v1/users', options)
  const entries = await readColumn(without.store, 'SELECT address FROM audit_entry')
  expect(entries).toEqual([proxy])
})

test('allow lists of keys and the buckets of addresses see the client behind the proxy', async () => {
  const listed = await control.key({ allowed_ips: ['192.0.2.0/24'] })
  const ask = async (client: string, key?: string) => {
    const headers = { 'x-forwarded-for': client }
    const options = { from: proxy, headers, ...(key !== undefined && { token: key }) }
    return control.request('/api/v1/health', options)
  }
  expect((await ask('192.0.2.7', listed)).status).toBe(200)
  expect((await ask('203.0.113.9', listed)).code).toBe('address_not_allowed')
  const remaining = async (client: string) =>
    Number((await ask(client)).headers.get('x-ratelimit-remaining'))
  const first = await remaining('198.51.100.1')
  expect(await remaining('198.51.100.2')).toBe(first)
  expect(await remaining('198.51.100.1')).toBe(first - 1)
})

test('a password is guessed at by the client, not by the proxy', async () => {
  await control.user('grace', 'operator')
  const guess = (client: string, password: string) => {
    const headers = { 'x-forwarded-for': client }
    return control.request('/auth/login', {
      from: proxy,
      headers,
      body: { username: 'grace', password },
    })
  }
  for (let count = 0; count < 5; count += 1) await guess('192.0.2.66', 'wrong')
  expect((await guess('192.0.2.66', 'correct horse')).status).toBe(429)
  expect((await guess('192.0.2.67', 'correct horse')).status).toBe(200)
})
