import { expect, test } from 'vitest'
import { ChainedHooks } from '../../../engine/hooks/chained-hooks.ts'
import type {
  DecidingHook,
  HookAnswer,
  HookDecisions,
  HookName,
  HookPort,
  InviteDecision,
} from '../../../schema/contracts/hooks.ts'
import { hookCall } from '../../support/routing-receiver.ts'

interface ScriptedHooks extends HookPort {
  readonly asked: HookName[]
  readonly useless: string[]
}

/** Code that answers onInvite, and whatever else is asked, so; undefined: there is none. */
function scripted(answer: HookAnswer<InviteDecision> | undefined): ScriptedHooks {
  const asked: HookName[] = []
  const useless: string[] = []
  return {
    asked,
    useless,
    has: (hook) => answer !== undefined && (hook === 'onInvite' || hook === 'onEnd'),
    ask<H extends DecidingHook>(hook: H) {
      asked.push(hook)
      return Promise.resolve((answer ?? { kind: 'nothing' }) as HookAnswer<HookDecisions[H]>)
    },
    unusable: (_hook, by, why) => void useless.push(`${by}: ${why}`),
    tell: (hook) => void asked.push(hook),
  }
}

const decided = (decision: InviteDecision, tenantId: number | null = null) =>
  ({
    kind: 'decided',
    decision,
    by: tenantId === null ? 'file' : 'webhook',
    tenantId,
    fallback: 'continue',
  }) as const

const failed = (fallback: 'continue' | 'refuse') =>
  ({ kind: 'failed', by: 'code', why: 'it hangs', fallback }) as const

const nothing = { kind: 'nothing' } as const

const ask = (file: ScriptedHooks, webhook: ScriptedHooks) =>
  new ChainedHooks(file, webhook).ask('onInvite', hookCall())

test.each([
  ['a refusal', decided({ refuse: { status: 486 } })],
  ['a set', decided({ set: 1 })],
  ['carriers', decided({ carriers: ['transit'] })],
  ['an extension', decided({ extension: '101' })],
  ['an agent', decided({ agent: 1 })],
  ['a URI', decided({ uri: 'sip:1@partner.example' })],
  ['a failure that refuses', failed('refuse')],
])('%s of the file is final: no webhook is asked', async (_, answer) => {
  const webhook = scripted(decided({ record: true }, 7))
  expect(await ask(scripted(answer), webhook)).toEqual(answer)
  expect(webhook.asked).toEqual([])
})

test('fields of the file win, and what comes of both holds within the tenant of the webhook', async () => {
  const file = scripted(decided({ to: '1', tags: { by: 'file' } }))
  const webhook = scripted(decided({ to: '2', set: 9, tags: { by: 'webhook' } }, 7))
  expect(await ask(file, webhook)).toEqual({
    kind: 'decided',
    decision: { to: '1', set: 9, tags: { by: 'file' } },
    by: 'file, webhook',
    byField: { to: 'file', set: 'webhook', tags: 'file' },
    tenantId: 7,
    fallback: 'continue',
  })
})

test('what of an answer cannot be used is told to both: each knows its own', () => {
  const [file, webhook] = [scripted(undefined), scripted(undefined)]
  new ChainedHooks(file, webhook).unusable('onInvite', 'webhook', 'there is no set 9')
  expect([file.useless, webhook.useless]).toEqual([
    ['webhook: there is no set 9'],
    ['webhook: there is no set 9'],
  ])
})

test('a refusal of the webhook stands alone', async () => {
  const refusal = decided({ refuse: { status: 603 } }, 7)
  expect(await ask(scripted(decided({ to: '1' })), scripted(refusal))).toEqual(refusal)
})

test.each([
  ['the file says nothing', nothing, decided({ set: 1 }, 7), decided({ set: 1 }, 7)],
  ['the file has failed', failed('continue'), decided({ set: 1 }, 7), decided({ set: 1 }, 7)],
  ['the webhook says nothing', decided({ to: '1' }), nothing, decided({ to: '1' })],
  ['the webhook has failed', decided({ to: '1' }), failed('continue'), decided({ to: '1' })],
  ['the webhook refuses by failing', decided({ to: '1' }), failed('refuse'), failed('refuse')],
  ['only the webhook has failed', nothing, failed('continue'), failed('continue')],
] as const)('%s: the other one counts', async (_, first, second, outcome) => {
  expect(await ask(scripted(first), scripted(second))).toEqual(outcome)
})

test('code that has no such hook is not asked, and only the file is told', async () => {
  const [file, webhook] = [scripted(undefined), scripted(decided({ set: 1 }, 7))]
  const hooks = new ChainedHooks(file, webhook)
  expect([hooks.has('onInvite'), hooks.has('onRoute')]).toEqual([true, false])
  expect((await hooks.ask('onInvite', hookCall())).kind).toBe('decided')
  expect(file.asked).toEqual([])
  const ended = { disposition: 'ANSWERED', sipCode: 200, hangupBy: 'caller', billsec: 1, tags: {} }
  hooks.tell('onEnd', { callUuid: 'call-1', from: '1', to: '2', ...ended })
  expect([file.asked, webhook.asked]).toEqual([['onEnd'], ['onInvite']])
})
