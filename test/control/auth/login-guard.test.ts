import { describe, expect, test } from 'vitest'
import { LoginGuard } from '../../../control/auth/login-routes.ts'
import { RequestWindows } from '../../../control/auth/rate-limit.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { requestNodes } from '../../support/request-nodes.ts'
import { eventually } from '../../support/waiting.ts'

const locked = { status: 429, code: 'login_locked' }
const attempt = (guard: LoginGuard, name = 'ada', address = '192.0.2.1') =>
  guard.failed(name, address, 0).then(
    () => 'failed',
    (error: { code: string }) => error.code,
  )

test('of many attempts at once, five learn that they failed', async () => {
  const guard = new LoginGuard(new RequestWindows({ steadyNow: () => 0 }))
  const told = await Promise.all(Array.from({ length: 9 }, () => attempt(guard)))
  expect(told.filter((each) => each === 'failed')).toHaveLength(5)
  await expect(guard.refuseLocked('Ada', '192.0.2.1', 899_999)).rejects.toMatchObject(locked)
  await guard.refuseLocked('ada', '192.0.2.1', 900_000)
})

describe.runIf(hasPostgres)('on several nodes', () => {
  const open = async () => {
    const [here, there] = (await requestNodes(2, () => 0)).map(
      ({ windows }) => new LoginGuard(windows),
    )
    if (here === undefined || there === undefined) throw new Error('two nodes')
    return [here, there] as const
  }

  test('failures at all nodes together lock a pair of name and address at each of them', async () => {
    const [here, there] = await open()
    const told = await Promise.all(
      Array.from({ length: 20 }, (_, n) => attempt(n % 2 === 0 ? here : there)),
    )
    expect(told.filter((each) => each === 'failed')).toHaveLength(5)
    for (const guard of [here, there]) {
      await expect(guard.refuseLocked('ada', '192.0.2.1', 0)).rejects.toMatchObject(locked)
      expect(await guard.isLocked('ada', '192.0.2.2', 0)).toBe(false)
      expect(await guard.isLocked('bob', '192.0.2.1', 0)).toBe(false)
    }
  })

  test('a login that succeeds at one node begins the count anew at all', async () => {
    const [here, there] = await open()
    for (let n = 0; n < 4; n += 1) await attempt(here)
    there.succeeded('ada', '192.0.2.1')
    await eventually(async () => expect(await attempt(here)).toBe('failed'))
    for (let n = 0; n < 4; n += 1) expect(await attempt(here)).toBe('failed')
    expect(await there.isLocked('ada', '192.0.2.1', 0)).toBe(true)
  })
})
