/** The simulator shows what a hook would do, on the tables of routing and charging. */
import { expect, test } from 'vitest'
import { openDoors } from '../../../support/number-doors.ts'
import { decides, fails, ScriptedHooks } from '../../../support/scripted-hooks.ts'

test('another number: route and price are of that one, and the hook is named', async () => {
  const doors = await openDoors()
  const hooks = new ScriptedHooks()
  hooks.answers.onInvite = decides({ to: '+19005551234' })
  const found = await doors.simulated('+4930100', hooks)
  expect(found).toMatchObject({
    asked: [{ hook: 'onInvite', by: 'hooks.ts', decision: { to: '+19005551234' }, failed: null }],
    calledNumber: '+19005551234',
  })
  const { verdict, payment } = await doors.simulated('+19005551234')
  expect(found).toMatchObject({ verdict, payment })
  expect(hooks.argumentsOf('onInvite')).toMatchObject([{ isSimulated: true, to: '+4930100' }])
})

test('carriers: only gateways of those that a hook names, and only where a route leads there', async () => {
  const doors = await openDoors()
  const hooks = new ScriptedHooks()
  hooks.answers.onInvite = decides({ carriers: ['north'] })
  expect(await doors.simulated('+4930100', hooks)).toMatchObject({ names: ['north'] })
  hooks.answers.onInvite = decides({ carriers: ['south'] })
  expect(await doors.simulated('+4930100', hooks)).toMatchObject({
    verdict: { kind: 'refused', code: 'no_route' },
    asked: [{ failed: 'no outbound route leads the number to one of its carriers' }],
  })
  expect(hooks.useless).toEqual([])
})

test('a refusal, a failure, and a hook that says nothing', async () => {
  const doors = await openDoors()
  const hooks = new ScriptedHooks()
  hooks.answers.onInvite = decides({ refuse: { status: 403 } })
  expect(await doors.simulated('+4930100', hooks)).toMatchObject({
    verdict: { kind: 'refused', status: 403, code: 'hook_refused' },
    payment: { kind: 'not_asked' },
    asked: [{ decision: { refuse: { status: 403 } } }],
  })
  hooks.answers.onInvite = fails('refuse')
  expect(await doors.simulated('+4930100', hooks)).toMatchObject({
    verdict: { code: 'hook_failed' },
    asked: [{ by: 'hooks.ts', decision: null, failed: 'hooks.ts:3: it threw' }],
  })
  hooks.answers.onInvite = () => ({ kind: 'nothing' })
  expect(await doors.simulated('+4930100', hooks)).toMatchObject({ asked: [] })
  expect(await doors.simulated('112', hooks)).toMatchObject({ asked: [] })
})

test("a tenant's simulation of a call that is not its own asks nobody's code", async () => {
  const doors = await openDoors()
  const hooks = new ScriptedHooks()
  hooks.answers.onInvite = decides({ refuse: { status: 403 } })
  const [acme, other] = [1, 2]
  expect(await doors.simulated('+4930100', hooks, other)).toMatchObject({ asked: [] })
  expect(hooks.asked).toEqual([])
  await doors.simulated('+4930100', hooks, acme)
  expect(hooks.asked).toHaveLength(1)
})

test('why code of the platform has failed is not told to a tenant; of its own webhook it is', async () => {
  const doors = await openDoors()
  const hooks = new ScriptedHooks()
  const acme = 1
  const why = 'connect ECONNREFUSED 10.0.0.5:80'
  hooks.answers.onInvite = fails('continue')
  const hidden = { by: 'hooks.ts', failed: 'it has failed' }
  expect(await doors.simulated('+4930100', hooks, acme)).toMatchObject({ asked: [hidden] })
  hooks.answers.onInvite = () => ({ ...fails('continue')(), why, tenantId: acme })
  expect(await doors.simulated('+4930100', hooks, acme)).toMatchObject({
    asked: [{ failed: why }],
  })
})
