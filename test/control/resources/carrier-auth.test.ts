import { expect, test } from 'vitest'
import { openResources, type TestResources } from '../../support/resources.ts'
import { readRow } from '../../support/stored.ts'

const path = '/api/v1/routing/carriers'
const secret = 'S3cret, with a comma'
const digest = { type: 'digest', username: 'acme', password: secret }
const carrier = { name: 'north', gateways: [{ host: '192.0.2.1' }] }

interface StoredAuth {
  readonly auth_type: string
  readonly auth_username: string | null
  readonly auth_password: string | null
}

/** As stored, with the password opened. */
async function stored({ store }: TestResources): Promise<StoredAuth | undefined> {
  const row = await readRow<StoredAuth>(
    store,
    'SELECT auth_type, auth_username, auth_password FROM carrier',
  )
  const sealed = row?.auth_password ?? null
  if (row === undefined || sealed === null) return row
  expect(sealed).toMatch(/^enc1:/)
  const place = { table: 'carrier', column: 'auth_password', row: 1 }
  return { ...row, auth_password: store.secrets.open(place, sealed) ?? null }
}

test('a carrier is paid with user and password, and the password is never shown again', async () => {
  const control = await openResources()
  const { call } = control
  const auth = { ...digest, realm: 'north', from_user: '15550100', from_domain: 'acme.example' }
  const created = await call('POST', path, { ...carrier, auth })
  expect(created.status).toBe(201)
  const { password: _, ...shown } = auth
  expect(created.data()).toMatchObject({ auth: { ...shown, expires: null } })
  const answers = [created, await call('GET', path), await call('GET', `${path}/1`)]
  answers.push(
    await call('PATCH', `${path}/1`, { max_calls: 3 }),
    await call('DELETE', `${path}/1`),
  )
  for (const answer of answers) expect(answer.text).not.toContain('S3cret')
  expect(JSON.stringify(control.logged)).not.toContain('S3cret')
})

test('a change without a password leaves the stored one, a new one replaces it', async () => {
  const control = await openResources()
  const { call } = control
  await call('POST', path, { ...carrier, auth: digest })
  await call('PATCH', `${path}/1`, { max_calls: 1 })
  await call('PATCH', `${path}/1`, { auth: { type: 'register', username: 'acme2' } })
  expect(await stored(control)).toEqual({
    auth_type: 'register',
    auth_username: 'acme2',
    auth_password: secret,
  })
  await call('PATCH', `${path}/1`, { auth: { ...digest, password: 'new' } })
  expect(await stored(control)).toMatchObject({ auth_password: 'new' })
})

test('a carrier that goes back to its address keeps no password', async () => {
  const control = await openResources()
  await control.call('POST', path, { ...carrier, auth: digest })
  await control.call('PATCH', `${path}/1`, { auth: { type: 'ip' } })
  expect(await stored(control)).toEqual({
    auth_type: 'ip',
    auth_username: null,
    auth_password: null,
  })
})

test('registration and gateways are shown as the engine sees them', async () => {
  const { call, engine } = await openResources()
  const at = Date.UTC(2026, 0, 1)
  Object.assign(engine.trunks, {
    registrationOf: () => ({
      state: 'failed',
      registrar: 'sip:192.0.2.1:5060;transport=udp',
      expiresAt: null,
      nextAttemptAt: at + 30_000,
      lastAnswer: { at, status: 403, reason: 'Forbidden' },
    }),
    gatewayStatus: () => ({
      state: 'probing',
      latencyMs: 12,
      lastProbe: { at, status: 0, reason: 'no answer' },
      probes: { sent: 3, answered: 0, failed: 3 },
    }),
  })
  const created = await call('POST', path, { ...carrier, auth: { ...digest, type: 'register' } })
  expect(created.data()).toMatchObject({
    registration: 'failed',
    gateways: [{ status: { state: 'probing', last_probe: { status: 0, reason: 'no answer' } } }],
    status: {
      is_usable: false,
      registration: {
        expires_at: null,
        next_attempt_at: '2026-01-01T00:00:30.000Z',
        last_answer: { status: 403, at: '2026-01-01T00:00:00.000Z' },
      },
    },
  })
})
