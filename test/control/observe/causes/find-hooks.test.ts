import { expect, test } from 'vitest'
import { findHooks } from '../../../../control/observe/causes/find-hooks.ts'
import type { HookTrouble } from '../../../../schema/contracts/hooks.ts'

const span = { from: 0, before: 10_000 }
const file: HookTrouble = {
  by: 'hooks.ts',
  hook: 'onInvite',
  message: 'hooks.ts:3: TypeError: x',
  file: 'hooks.ts',
  line: 3,
  count: 2,
  firstAt: 1_000,
  lastAt: 2_000,
}
const webhookOf = (id: number, tenantId: number | null): HookTrouble => ({
  ...file,
  by: `routing webhook ${id}`,
  message: 'status 500',
  file: null,
  line: null,
  webhook: { id, tenantId },
})
const hookTroubles = () => [file, webhookOf(4, 7), webhookOf(5, null), webhookOf(6, 8)]

test('the operator sees failures of the file and of all routing webhooks, with the next step', () => {
  const found = findHooks({ hookTroubles, tenantId: null }, span)
  expect(found.map(({ subject, evidence }) => [subject, evidence])).toEqual([
    ['hook onInvite', ['hooks.ts:3']],
    ['routing webhook 4', []],
    ['routing webhook 5', []],
    ['routing webhook 6', []],
  ])
  expect(found[0]?.advice).toContain('HOOKS_FALLBACK')
  expect(found[1]).toMatchObject({
    what: expect.stringMatching(/^routing webhook 4 has failed 2 times since .*: status 500$/),
    advice: expect.stringContaining('POST /api/v1/routing-webhooks/4/test'),
  })
})

test('a tenant sees failures of its own routing webhooks alone', () => {
  const found = findHooks({ hookTroubles, tenantId: 7 }, span)
  expect(found.map(({ subject }) => subject)).toEqual(['routing webhook 4'])
})
