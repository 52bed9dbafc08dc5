import { expect, test } from 'vitest'
import { KeyUsage } from '../../../control/auth/key-usage.ts'
import { openControl } from '../../support/control.ts'
import { localOf, readRow, readValue } from '../../support/stored.ts'
import { onSqlite } from '../../support/on-sqlite.ts'

interface Counters {
  readonly request_count: number
  readonly last_used_at: number | null
}

async function opened() {
  const control = await openControl()
  const token = await control.key({ rate_limit_rpm: 5 })
  const stored = () =>
    readRow<Counters>(control.store, 'SELECT request_count, last_used_at FROM application_key')
  const ask = () => control.request('/api/v1/health', { token })
  return { ...control, token, stored, ask }
}

test('requests are counted in memory and stored by the next tick', async () => {
  const { ask, stored, access, tick, now } = await opened()
  await ask()
  tick(700)
  await ask()
  expect(await stored()).toEqual({ request_count: 0, last_used_at: null })
  await access.tick()
  expect(await stored()).toEqual({ request_count: 2, last_used_at: now() })
  await access.tick()
  expect((await stored())?.request_count).toBe(2)
})

test('ticks at once count each request once, and requests during one are counted by the next', async () => {
  const { ask, stored, access } = await opened()
  await ask()
  const ticks = [access.tick(), access.tick()]
  await ask()
  await Promise.all(ticks)
  await access.tick()
  expect((await stored())?.request_count).toBe(2)
})

test('only requests that were let in are counted', async () => {
  const { ask, stored, access, request, token } = await opened()
  for (let i = 0; i < 9; i += 1) await ask()
  await request('/api/v1/health', { token: `${token.slice(0, -1)}~` })
  await access.tick()
  expect((await stored())?.request_count).toBe(5)
})

onSqlite('handle')('counters that cannot be stored now are stored later', async () => {
  const { ask, stored, access, store } = await opened()
  await ask()
  localOf(store).sqlite.pragma('query_only = ON')
  await expect(access.tick()).rejects.toThrow(/readonly/)
  localOf(store).sqlite.pragma('query_only = OFF')
  await ask()
  await access.tick()
  expect((await stored())?.request_count).toBe(2)
})

const day = 86_400_000
const minute = 60_000

onSqlite('one process')(
  'the requests of each day are kept for thirty days, also after a clock that was ahead',
  async () => {
    const { ask, tick, jump, access, store, request, token } = await opened()
    const self = await request('/api/v1/application-keys/self', { token })
    const { uuid } = self.data<{ uuid: string }>()
    const rows = () => readValue(store, 'SELECT count(*) FROM application_key_day')
    jump(400 * day)
    await ask()
    await access.tick()
    jump(-400 * day)
    for (let index = 0; index < 40; index += 1) {
      tick(day)
      await ask()
      if (index === 39) await ask()
      await access.tick()
    }
    const answer = await request(`/api/v1/application-keys/${uuid}/usage`, { token })
    const { days } = answer.data<{ days: { date: string; requests: number }[] }>()
    expect(days).toHaveLength(30)
    expect(days.at(-1)).toEqual({ date: '2026-02-10', requests: 2 })
    expect(days[0]).toEqual({ date: '2026-01-12', requests: 1 })
    expect(await rows()).toBe(30)
  },
)

test('the requests of the last sixty minutes are counted, of all nodes and after a restart, and no others', async () => {
  const { ask, access, store, deps, now, tick } = await opened()
  const [one, other] = [access.usage, new KeyUsage(store, now)]
  const keyId = 1
  await ask()
  tick(30 * minute)
  other.seen(keyId, now())
  tick(minute)
  await access.tick()
  await other.flush()
  await ask()
  expect(await one.ofLastHour(keyId)).toBe(3)
  tick(minute)
  await access.tick()
  // A node that starts now.
  expect(await new KeyUsage(store, deps.now).ofLastHour(keyId)).toBe(3)
  tick(28 * minute)
  expect(await one.ofLastHour(keyId)).toBe(2)
  tick(31 * minute)
  await ask()
  expect(await one.ofLastHour(keyId)).toBe(1)
  tick(minute)
  await access.tick()
  expect(await readValue(store, 'SELECT count(*) FROM application_key_minute')).toBe(1)
  tick(60 * minute)
  expect(await one.ofLastHour(keyId)).toBe(0)
})
