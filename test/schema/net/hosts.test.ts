import { expect, test } from 'vitest'
import { Hosts, urlsOf } from '../../../schema/net/hosts.ts'

const two = 'postgres://u:p%2Cq@one:5432,two:5433/tollgate?target_session_attrs=read-write'

test.each([
  ['postgres://u@one/db', ['postgres://u@one/db']],
  [
    'postgres://u:p%2Cq@one:5432,two:5433/db?sslmode=require',
    [
      'postgres://u:p%2Cq@one:5432/db?sslmode=require',
      'postgres://u:p%2Cq@two:5433/db?sslmode=require',
    ],
  ],
  ['postgres://[::1]:1,[::2]/db', ['postgres://[::1]:1/db', 'postgres://[::2]/db']],
  [
    'postgres://u@h/db?host=/one,/two&port=1,2',
    ['postgres://u@h/db?host=%2Fone&port=1', 'postgres://u@h/db?host=%2Ftwo&port=2'],
  ],
])('%s names each of its servers', (url, urls) => {
  expect(urlsOf(url)).toEqual(urls)
})

test.each([
  'mysql://u@one/db',
  'postgres://u@one:port,two/db',
  'postgres://u@one,two/db?target_session_attrs=read-only',
])('%s is no place to serve from', (url) => {
  expect(urlsOf(url)).toBeUndefined()
})

test('the server that has failed is left for the next one, by those that used it', () => {
  const hosts = new Hosts(two)
  const { url } = hosts
  hosts.failed(url)
  expect(new URL(hosts.url).hostname).toBe('two')
  hosts.failed(url)
  expect(new URL(hosts.url).hostname).toBe('two')
  hosts.failed(hosts.url)
  expect(hosts.url).toBe(url)
})

test('of several hosts a standby is refused, and one host is taken as it is', async () => {
  const standby = { query: () => Promise.resolve({ rows: [{ transaction_read_only: 'on' }] }) }
  const check = (url: string) => new Hosts(url).check(standby as never)
  await expect(check(two)).rejects.toThrow('the server is a standby')
  await expect(check('postgres://one/db?target_session_attrs=primary')).rejects.toThrow('standby')
  await expect(check('postgres://one/db')).resolves.toBeUndefined()
})
