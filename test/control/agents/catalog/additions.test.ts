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
