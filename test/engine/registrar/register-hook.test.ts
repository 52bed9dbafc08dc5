/** The operator's own code is asked about a phone that has proved its password, and about no other. */
import { expect, test } from 'vitest'
import type { RegistrarDeps } from '../../../engine/registrar/registrar.ts'
import type { HookAnswer, RegisterDecision } from '../../../schema/contracts/hooks.ts'
import { decides, fails, ScriptedHooks } from '../../support/scripted-hooks.ts'
import { Phone, startRegistrar, whileWriting } from './phone.ts'

const open = async (answer: () => HookAnswer<RegisterDecision>) => {
  const hooks = new ScriptedHooks()
  hooks.answers.onRegister = answer
  const { port }: { readonly port: NonNullable<RegistrarDeps['hooks']> } = hooks
  const world = await startRegistrar({ hooks: port })
  const { registrar, time } = world
  // What is written after the hook has answered is written by a timer.
  const ask: typeof world.ask = async (request) => {
    const answered = registrar.handle(request)
    await Promise.resolve()
    time.advance(50)
    return whileWriting(registrar, answered)
  }
  return { hooks, world: { ...world, ask } }
}

const statusOf = ({ registrar }: Pick<Awaited<ReturnType<typeof startRegistrar>>, 'registrar'>) =>
  registrar.statusOf('acme.example', '101').status

test('a hook learns who registers from where, and lets it', async () => {
  const { hooks, world } = await open(() => ({ kind: 'nothing' }))
  const phone = new Phone(world, { userAgent: 'Snom' })
  expect((await phone.register()).status).toBe(200)
  expect(hooks.argumentsOf('onRegister')).toEqual([
    {
      extension: '101',
      domain: 'acme.example',
      tenantId: expect.any(Number),
      contact: 'sip:101@203.0.113.7:5060',
      userAgent: 'Snom',
      source: { address: '203.0.113.7', port: 5_060 },
    },
  ])
  expect(statusOf(world)).toBe('registered')
})

test('a hook refuses a phone with the status that it says', async () => {
  const { world } = await open(decides({ refuse: { status: 403, reason: 'Not from there' } }))
  expect(await new Phone(world).register()).toMatchObject({
    status: 403,
    reason: 'Not from there',
  })
  expect(statusOf(world)).toBe('unregistered')
})

test('a hook that fails: the phone is registered, or has to come again, as the fallback says', async () => {
  const lenient = await open(fails('continue'))
  expect((await new Phone(lenient.world).register()).status).toBe(200)
  const strict = await open(fails('refuse'))
  expect(await new Phone(strict.world).register()).toMatchObject({
    status: 503,
    headers: { 'Retry-After': '5' },
  })
  expect(strict.world.logged.join()).toContain('a hook has failed')
})

test('a wrong password asks no hook, and neither does a phone that leaves', async () => {
  const { hooks, world } = await open(decides({ refuse: { status: 403 } }))
  await new Phone(world, { password: 'wrong' }).register()
  expect(hooks.asked).toEqual([])
  expect((await new Phone(world).register({ expires: '0' })).status).toBe(200)
  expect(hooks.asked).toEqual([])
})
