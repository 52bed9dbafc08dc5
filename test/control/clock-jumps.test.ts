/**
 * Things that end in time do so whatever the machine's clock is set to, and limits go by what was
 * measured.
 */
import { expect, test } from 'vitest'
import { Retention } from '../../control/observe/retention/retention.ts'
import { earliest } from '../../schema/clock.ts'
import { openControl, startOfTime, type TestControl } from '../support/control.ts'
import { onSqlite } from '../support/on-sqlite.ts'
import { readValue } from '../support/stored.ts'

const hour = 3_600_000
const jumps = [hour, -hour, 400 * 24 * hour, -400 * 24 * hour] as const
const HEALTH = '/api/v1/health'

async function signedIn(control: TestControl): Promise<string> {
  const body = { username: 'ann', password: 'correct horse' }
  const answer = await control.request('/api/v1/auth/login', { body })
  return answer.data<{ token: string }>().token
}

const meOf = async (control: TestControl, token: string): Promise<number> =>
  (await control.request('/api/v1/auth/me', { token })).status

onSqlite('one process').each(jumps)(
  'set by %i ms: a rate window stays as full as it was',
  async (jumpMs) => {
    const { key, request, tick, jump, now } = await openControl()
    const token = await key({ rate_limit_rpm: 1 })
    await request(HEALTH, { token })
    jump(jumpMs)
    const denied = await request(HEALTH, { token })
    expect([denied.status, denied.headers.get('retry-after')]).toEqual([429, '60'])
    expect(denied.headers.get('x-ratelimit-reset')).toBe(String(now() / 1_000 + 60))
    tick(60_000)
    expect((await request(HEALTH, { token })).status).toBe(200)
  },
)

onSqlite('one process').each(jumps)(
  'set by %i ms: a locked login stays locked for its time',
  async (jumpMs) => {
    const control = await openControl()
    const { request, tick, jump } = control
    await control.user('ann', 'admin')
    const wrong = { body: { username: 'ann', password: 'wrong horse' } }
    for (let failure = 0; failure < 5; failure += 1) await request('/api/v1/auth/login', wrong)
    jump(jumpMs)
    expect((await request('/api/v1/auth/login', wrong)).code).toBe('login_locked')
    tick(15 * 60_000)
    expect((await request('/api/v1/auth/login', wrong)).status).toBe(401)
  },
)

test.each(jumps)(
  'set by %i ms: no session outlives its hour, and new ones hold',
  async (jumpMs) => {
    const control = await openControl()
    await control.user('ann', 'admin')
    const before = await signedIn(control)
    control.jump(jumpMs)
    expect(await meOf(control, before)).toBe(jumpMs > 0 ? 401 : 200)
    const after = await signedIn(control)
    control.tick(hour - 1_000)
    expect(await meOf(control, after)).toBe(200)
    control.tick(1_000)
    expect(await meOf(control, before)).toBe(401)
    expect(await meOf(control, after)).toBe(401)
  },
)

test('a session that began while the clock was ahead ends when the clock is right again', async () => {
  const control = await openControl()
  await control.user('ann', 'admin')
  control.jump(hour)
  const token = await signedIn(control)
  expect(await meOf(control, token)).toBe(200)
  control.jump(-hour)
  expect(await meOf(control, token)).toBe(401)
  expect(await meOf(control, await signedIn(control))).toBe(200)
})

test('a session that was ended does not come back when the clock was ahead for a while', async () => {
  const control = await openControl()
  await control.user('ann', 'admin')
  const [ended, other] = [await signedIn(control), await signedIn(control)]
  await control.request('/api/v1/auth/logout', { token: ended, body: {} })
  control.jump(24 * hour)
  const fresh = await signedIn(control)
  await control.request('/api/v1/auth/logout', { token: fresh, body: {} })
  control.jump(-24 * hour)
  expect([await meOf(control, ended), await meOf(control, other)]).toEqual([401, 200])
})

test('a key does not outlive its expiry, and a clock that is set back brings none back', async () => {
  const { key, request, tick, jump } = await openControl()
  const token = await key({ expires_at: new Date(startOfTime + hour).toISOString() })
  jump(-24 * hour)
  tick(hour - 1)
  expect((await request(HEALTH, { token })).status).toBe(200)
  tick(1)
  expect((await request(HEALTH, { token })).status).toBe(401)
})

test.each(jumps)('set by %i ms: an Idempotency-Key is remembered for its day', async (jumpMs) => {
  const { key, request, tick, jump } = await openControl()
  const token = await key()
  const ask = async () => {
    const headers = { 'Idempotency-Key': 'once' }
    const answer = await request('/api/v1/application-keys', {
      token,
      body: { name: 'a' },
      headers,
    })
    return answer.data<{ uuid: string }>().uuid
  }
  const made = await ask()
  jump(jumpMs)
  tick(hour)
  expect(await ask()).toBe(made)
})

test('a clock that was set forward for a while makes nothing be forgotten', async () => {
  const { key, request, store, jump, tick, deps } = await openControl()
  await request('/api/v1/application-keys', { token: await key(), body: { name: 'a' } })
  const periods = { callRecordDays: 0, auditDays: 30 }
  const log = () => undefined
  const retention = new Retention({ store, now: () => earliest(deps), log }, periods)
  const storedCount = () => readValue(store, 'SELECT count(*) FROM audit_entry')
  jump(400 * 24 * hour)
  await retention.step()
  expect(await storedCount()).toBe(1)
  tick(31 * 24 * hour)
  await retention.step()
  expect(await storedCount()).toBe(0)
})
