/** `add_rate` and `add_number`: an agent proposes, a person approves, `list_changes` shows it, and it is undone. */
import { expect, test } from 'vitest'
import { openProposalRig } from '../../../support/proposal-rig.ts'
import { forgetChanges } from '../../../support/tools-rig.ts'

interface Changes {
  readonly changes: readonly { readonly change_id: string; readonly state: string }[]
  readonly total: number
}

async function openAdditions() {
  const rig = await openProposalRig()
  const block = { method: 'PATCH', token: rig.root, body: { numbers: ['4930'] } }
  expect((await rig.request('/api/v1/tenants/1', block)).status).toBe(200)
  await forgetChanges(rig)
  const other = await rig.key({ tenant_scope: 'tenant', tenant_slug: 'other' })
  const numbers = async () => {
    const answer = await rig.request('/api/v1/customers/1', { token: rig.root })
    return answer.data<{ numbers: readonly string[] }>().numbers
  }
  const price = async (number: string) => {
    const answer = await rig.tool('lookup_rate', { number, customer: 'acme customer' })
    return answer.status === 200
      ? answer.data<{ rate_per_minute_exact: string }>().rate_per_minute_exact
      : answer.code
  }
  const changes = async (given: object = {}, token = rig.root) =>
    (await rig.tool('list_changes', given, token)).data<Changes>()
  return { ...rig, other, numbers, price, changes }
}

type Rig = Awaited<ReturnType<typeof openAdditions>>

const additions: readonly {
  readonly tool: string
  readonly given: object
  readonly effect: RegExp
  readonly kind: string
  /** What a call of it changes, as other tools show it. */
  readonly shown: (rig: Rig) => Promise<unknown>
  readonly before: unknown
  readonly after: unknown
}[] = [
  {
    tool: 'add_rate',
    given: { customer: 'acme customer', prefix: '44', rate_per_minute: '0.12' },
    effect: /^Calls to numbers that begin with 44 cost 0\.12 USD a minute .*"acme plan"/,
    kind: 'rate',
    shown: ({ price }) => price('447700900123'),
    before: 'no_rate',
    after: '0.12',
  },
  {
    tool: 'add_number',
    given: { customer: 'acme customer', number: '4930199' },
    effect: /^The customer "acme customer" pays for calls from "4930199"/,
    kind: 'customer',
    shown: ({ numbers }) => numbers(),
    before: ['4930100'],
    after: ['4930100', '4930199'],
  },
]

test.each(additions)(
  '$tool is refused to another tenant, and what is there already is not added twice',
  async ({ tool, given, shown, before, after }) => {
    const rig = await openAdditions()
    const add = (token = rig.root) => rig.tool(tool, { ...given, reason: 'for the test' }, token)
    expect((await add(rig.other)).status).toBe(400)
    expect(await shown(rig)).toEqual(before)
    expect((await add()).status).toBe(200)
    const again = await add()
    const isSame = again.status === 200 && !again.data<{ changed: boolean }>().changed
    expect([again.code, isSame]).toEqual(
      tool === 'add_rate' ? ['duplicate', false] : [undefined, true],
    )
    expect(await shown(rig)).toEqual(after)
    expect((await rig.changes()).total).toBe(1)
  },
)

test('a number of no block of the tenant is refused when it is proposed, and a taken one without saying whose it is', async () => {
  const rig = await openAdditions()
  for (const number of ['4940200', '4930100']) {
    const foreign = await rig.tool('add_number', { customer: 1, number, reason: 'x' }, rig.other)
    expect([number, foreign.status]).toEqual([number, 400])
  }
  const given = { customer: 'acme customer', number: '4940200' }
  const proposed = await rig.propose('add_number', given)
  expect([proposed.status, proposed.text]).toEqual([400, expect.stringContaining('number block')])
  const dry = { ...given, reason: 'for the test', dry_run: true }
  expect((await rig.tool('add_number', dry)).status).toBe(200)

  const body = { name: 'another', tenant: 'acme' }
  await rig.request('/api/v1/customers', { token: rig.root, body })
  const taken = await rig.propose('add_number', { customer: 'another', number: '+4930100' })
  expect([taken.status, taken.code]).toEqual([409, 'duplicate'])
  expect(taken.text).not.toContain('acme customer')
})
