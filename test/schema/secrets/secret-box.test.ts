import { expect, test } from 'vitest'
import { isSealed, SecretBox } from '../../../schema/secrets/secret-box.ts'

const box = new SecretBox(Buffer.alloc(32, 1))
const place = { table: 'carrier', column: 'auth_password', row: 7 }

test('what is sealed opens with its key in its place, and shows nothing of itself', () => {
  const sealed = box.seal(place, 'between carriers')
  expect(isSealed(sealed)).toBe(true)
  expect(sealed).not.toContain('between')
  expect(box.open(place, sealed)).toBe('between carriers')
})

test('a sealed value opens in no other row, column or table', () => {
  const sealed = box.seal(place, 'between carriers')
  for (const other of [{ row: 8 }, { row: '7' }, { column: 'auth_realm' }, { table: 'setting' }])
    expect(box.open({ ...place, ...other }, sealed)).toBeUndefined()
})

test('another key opens nothing, and neither does a changed value', () => {
  const sealed = box.seal(place, 'between carriers')
  expect(new SecretBox(Buffer.alloc(32, 2)).open(place, sealed)).toBeUndefined()
  const bytes = Buffer.from(sealed.slice(5), 'base64')
  for (let index = 0; index < bytes.length; index += 1) {
    const changed = Buffer.from(bytes)
    changed[index] = (changed[index] ?? 0) ^ 1
    expect(box.open(place, `enc1:${changed.toString('base64')}`)).toBeUndefined()
  }
  for (const broken of ['enc1:', 'enc1:AAAA', 'enc2:'.concat(sealed.slice(5)), ''])
    expect(box.open(place, broken)).toBeUndefined()
})

test('no two texts and no two places share a nonce', () => {
  const nonces = new Set<string>()
  for (let row = 0; row < 500; row += 1)
    for (const text of ['a', 'b']) nonces.add(box.seal({ ...place, row }, text).slice(5, 21))
  expect(nonces.size).toBe(1_000)
})

test('each purpose has a key of its own, the same for all that have the first key', () => {
  const instances = box.keyFor('nodes')
  expect(instances).toHaveLength(32)
  expect(new SecretBox(Buffer.alloc(32, 1)).keyFor('nodes')).toEqual(instances)
  expect(box.keyFor('node')).not.toEqual(instances)
  expect(new SecretBox(Buffer.alloc(32, 2)).keyFor('nodes')).not.toEqual(instances)
})
