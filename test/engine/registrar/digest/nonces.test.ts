import { expect, test } from 'vitest'
import { Nonces } from '../../../../engine/registrar/digest/nonces.ts'

const owner = { realm: 'acme.example', address: '203.0.113.7' }

function nonces(maxInUse = 100, secret = 1) {
  const time = { now: 1_000_000_000_000 }
  const deps = { secret: String(secret).repeat(64), now: () => time.now, nonceLifetimeMs: 60_000 }
  const table = new Nonces(deps, maxInUse)
  return { time, table }
}

test('no two nonces are the same, even in one millisecond', () => {
  const { table } = nonces()
  const issued = Array.from({ length: 1_000 }, () => table.issue(owner))
  expect(new Set(issued).size).toBe(1_000)
})

test('a nonce belongs to its process, its realm and its address; with one bit changed it is unknown', () => {
  const { table } = nonces()
  const nonce = table.issue(owner)
  expect(table.isGenuine(nonce, owner)).toBe(true)
  expect(table.isGenuine(nonce, { ...owner, realm: 'other' })).toBe(false)
  expect(table.isGenuine(nonce, { ...owner, address: '203.0.113.8' })).toBe(false)
  expect(nonces(100, 2).table.isGenuine(nonce, owner)).toBe(false)
  const bytes = Buffer.from(nonce, 'base64url')
  for (let index = 0; index < bytes.length; index++) {
    const altered = Buffer.from(bytes)
    altered[index] = (altered[index] ?? 0) ^ 1
    expect(table.isGenuine(altered.toString('base64url'), owner)).toBe(false)
  }
})

test('a count is taken once, and only upwards', () => {
  const { table } = nonces()
  const nonce = table.issue(owner)
  expect([1, 1, 2, 5, 4, 6].map((count) => table.use(nonce, owner, count))).toEqual([
    true,
    false,
    true,
    true,
    false,
    true,
  ])
})

test('a nonce is good for its lifetime and not a millisecond longer', () => {
  const { table, time } = nonces()
  const nonce = table.issue(owner)
  time.now += 59_999
  expect(table.use(nonce, owner, 1)).toBe(true)
  time.now += 1
  expect(table.use(nonce, owner, 2)).toBe(false)
})

test('issuing costs no memory, use a bounded amount, and what was forgotten cannot be replayed', () => {
  const { table, time } = nonces(10)
  for (let count = 0; count < 1_000; count++) table.issue(owner)
  expect(table.size).toBe(0)
  const used = Array.from({ length: 50 }, () => {
    time.now += 1
    const nonce = table.issue(owner)
    expect(table.use(nonce, owner, 1)).toBe(true)
    return nonce
  })
  expect(table.size).toBe(10)
  expect(used.filter((nonce) => table.use(nonce, owner, 1))).toEqual([])
  time.now += 60_000
  table.use(table.issue(owner), owner, 1)
  expect(table.size).toBe(1)
})
