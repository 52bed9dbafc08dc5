import { expect, test } from 'vitest'
import { hashToken } from '../../../../control/auth/keys/app-key.ts'
import { KeyCache } from '../../../../control/auth/keys/key-cache.ts'
import { KeyStore } from '../../../../control/auth/keys/key-store.ts'
import { KeyVerifier } from '../../../../control/auth/keys/verify-key.ts'
import { openControl, startOfTime } from '../../../support/control.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'

function verifier(control = openControl()) {
  const cache = new KeyCache()
  const keys = new KeyStore(control.store, cache)
  const subject = new KeyVerifier(keys, cache)
  const kindOf = (token: string) => subject.verify(token, '192.0.2.1', control.now()).kind
  return { control, cache, keys, kindOf }
}

/** Another token with the same first 12 characters. */
const twinOf = (token: string) => `${token.slice(0, 12)}${'A'.repeat(token.length - 12)}`

test('of keys with the same 12 characters each token finds its own', () => {
  const { control, keys, kindOf } = verifier()
  const first = control.key({ name: 'first' })
  const twin = twinOf(first)
  keys.insert({
    uuid: '11111111-1111-4111-8111-111111111111',
    kind: 'sbc',
    name: 'twin',
    description: null,
    keyPrefix: twin.slice(0, 12),
    keyHash: Buffer.from(hashToken(twin), 'base64'),
    scopeLabels: ['*'],
    rateLimitRpm: 1,
    expiresAt: null,
    isActive: false,
    tenantId: null,
    domain: null,
    allowedIps: [],
    ownerUsername: null,
    createdAt: startOfTime,
  })
  expect(keys.candidates(first.slice(0, 12))).toHaveLength(2)
  expect(kindOf(first)).toBe('accepted')
  expect(kindOf(twin)).toBe('rejected')
})

test('a token that differs in one character after the prefix is refused', () => {
  const { control, kindOf } = verifier()
  const token = control.key()
  const last = token.endsWith('A') ? 'B' : 'A'
  expect(kindOf(`${token.slice(0, -1)}${last}`)).toBe('rejected')
  expect(kindOf(token)).toBe('accepted')
})

test('a token that was tried before it existed works from the moment it does', () => {
  const { control, keys, cache, kindOf } = verifier()
  const token = control.key()
  control.store.sqlite.exec('UPDATE application_key SET key_hash = randomblob(32)')
  expect(kindOf(token)).toBe('rejected')
  expect(cache.size().unknown).toBe(1)

  keys.insert({
    uuid: '22222222-2222-4222-8222-222222222222',
    kind: 'sbc',
    name: 'late',
    description: null,
    keyPrefix: token.slice(0, 12),
    keyHash: Buffer.from(hashToken(token), 'base64'),
    scopeLabels: [],
    rateLimitRpm: 1,
    expiresAt: null,
    isActive: true,
    tenantId: null,
    domain: null,
    allowedIps: [],
    ownerUsername: null,
    createdAt: startOfTime,
  })
  expect(kindOf(token)).toBe('accepted')
})

test('a known token is not read from the database again, an unknown one neither', () => {
  const { control, kindOf } = verifier()
  const token = control.key()
  const unknown = twinOf(token)
  kindOf(token)
  kindOf(unknown)
  control.store.sqlite.exec('DROP TABLE application_key_previous')
  control.store.sqlite.exec('DELETE FROM application_key')
  expect(kindOf(token)).toBe('accepted')
  expect(kindOf(unknown)).toBe('rejected')
})

test('a flood of wrong tokens takes bounded memory', () => {
  const { cache } = verifier()
  for (let i = 0; i < 25_000; i += 1) cache.rememberUnknown(`hash ${i}`)
  expect(cache.size().unknown).toBe(10_000)
})

const folder = temporaryFolder()

test('a change by another process holds after the next tick', async () => {
  const control = openControl(`${folder}/keys.db`)
  const token = control.key()
  expect((await control.request('/api/v1/health', { token })).status).toBe(200)
  const other = openControl(`${folder}/keys.db`)
  other.store.sqlite.exec('UPDATE application_key SET revoked_at = 1')
  other.store.close()
  control.access.tick()
  expect((await control.request('/api/v1/health', { token })).status).toBe(401)
  control.store.close()
})
