/** Spend guards by REST: what they do to the next call, and who may set and remove them. */
import { beforeEach, describe, expect, test } from 'vitest'
import type { Answer } from '../../support/control.ts'
import { openProposalRig } from '../../support/proposal-rig.ts'
import { openResources, type TestResources } from '../../support/resources.ts'
import type { Selectable } from 'kysely'
import { execute } from '../../../schema/sql/query.ts'
import { endedCall } from '../../support/books.ts'
import { storeCall } from '../../support/stored-calls.ts'
import { readRows } from '../../support/stored.ts'
import type { SpendingCapTable } from '../../../schema/tables/money.ts'

let world: TestResources

beforeEach(async () => {
  world = await openResources()
  for (const slug of ['acme', 'other']) {
    await world.tenant(slug, [`${slug}.example`])
    await made('/rate-plans', { name: `${slug} plan`, tenant: slug })
    await made('/rates', { rate_plan: `${slug} plan`, prefix: '', rate_per_minute: '0.60' })
    await made('/customers', {
      name: `${slug} customer`,
      tenant: slug,
      rate_plan: `${slug} plan`,
      balance: '10',
      numbers: [slug === 'acme' ? '4930100' : '4930200'],
    })
    const phone = { tenant: slug, extension: '101', password: 'long enough', display_name: 'x' }
    await made('/pbx/extensions', phone)
  }
})

async function made(path: string, body: object): Promise<void> {
  const answer = await world.call('POST', path, body)
  if (answer.status !== 201) throw new Error(`${path}: ${answer.text}`)
}

interface Changed {
  readonly guard: Record<string, unknown> & { readonly guard_id: string }
  readonly changed: boolean
  readonly change_id: string | null
  readonly effect: string
  readonly affected: Record<string, number>
}

const block = { customer: 'acme customer', prefix: '+1 900', action: 'block', reason: 'too dear' }
const cap = { ...block, action: 'cap', amount: '1.00' }

const set = async (
  body: object,
  by = (given: object) => world.call('POST', '/spend-guards', given),
) => {
  const answer = await by(body)
  expect([answer.status, answer.text]).toEqual([201, answer.text])
  return answer.data<Changed>()
}
const asAcme = (method: string, path: string, body?: object) =>
  world.callAs('acme', method, path, body)
const dial = async (
  callee: string,
  caller = '4930100',
  uuid = `${callee} ${Math.floor(world.now())}`,
) => {
  const query = new URLSearchParams({ caller, callee, call_uuid: uuid.replaceAll(' ', '-') })
  const { status, body } = await world.call('GET', `/api/ocs/authorize?${query.toString()}`)
  return [status, (body as { code?: string }).code]
}

test('the next call to the prefix is refused, and one to another number is not', async () => {
  const { guard, effect, changed } = await set({ ...block, duration: 3_600 })
  expect(changed).toBe(true)
  expect(effect).toBe(
    'Calls of customer "acme customer" to numbers that begin with "1900" are refused until 2026-01-01T01:00:00.000Z.',
  )
  expect(guard).toMatchObject({
    scope: 'customer',
    name: 'acme customer',
    prefix: '1900',
    action: 'block',
    state: 'active',
    set_by: 'platform',
    expires_at: '2026-01-01T01:00:00.000Z',
  })
  expect(await dial('001900555')).toEqual([403, 'spend_guard'])
  expect(await dial('1800555')).toEqual([200, undefined])
  expect(await dial('1900555', '4930200')).toEqual([200, undefined])
})

test('a dry run tells live calls and spending, and changes nothing', async () => {
  const hour = 3_600_000
  const called = (uuid: string, hours: number, costMicros: number) =>
    storeCall(
      world.store,
      endedCall(uuid, 60, {
        customerId: 1,
        tenantId: 1,
        calledNumber: '+1900555',
        startedAt: world.now() - hours * hour,
      }),
      { costMicros, currency: 'USD' },
    )
  await called('one', 0.5, 600_000)
  await called('two', 5, 400_000)
  await dial('1900555')
  const { changed, change_id, affected } = await set({ ...block, dry_run: true })
  expect([changed, change_id]).toEqual([true, null])
  expect(affected).toEqual({
    live_calls: 1,
    calls_last_hour: 1,
    spent_last_hour: 0.6,
    calls_last_day: 2,
    spent_last_day: 1,
  })
  expect((await world.call('GET', '/spend-guards')).data()).toEqual([])
})

test('setting it again changes nothing, and setting another action replaces it', async () => {
  const first = await set(block)
  const again = await set({ ...block, prefix: '001900' })
  expect([again.changed, again.guard.guard_id]).toEqual([false, first.guard.guard_id])
  const replaced = await set(cap)
  expect([replaced.changed, replaced.guard.guard_id]).toEqual([true, first.guard.guard_id])
  expect((await world.call('GET', '/spend-guards')).data()).toMatchObject([
    { action: 'cap', amount_exact: '1.00', currency: 'USD', per: 'duration', left_exact: '1.00' },
  ])
})

test('a removed guard brakes no more, and is listed with those that ended', async () => {
  const { guard } = await set(block)
  const path = `/spend-guards/${guard.guard_id}`
  expect((await world.call('DELETE', `${path}?reason=over&dry_run=true`)).status).toBe(200)
  expect(await dial('1900555')).toEqual([403, 'spend_guard'])
  expect((await world.call('DELETE', path)).data<Changed>().changed).toBe(true)
  expect(await dial('1900555')).toEqual([200, undefined])
  expect((await world.call('DELETE', path)).data<Changed>().changed).toBe(false)
  expect((await world.call('GET', '/spend-guards')).data()).toEqual([])
  expect((await world.call('GET', '/spend-guards?state=all')).data()).toMatchObject([
    { state: 'removed' },
  ])
  expect((await world.call('GET', path)).data()).toMatchObject({ state: 'removed' })
})

test('a tenant guards its own, and sees and removes nothing of others', async () => {
  const own = await set({ ...block, customer: undefined, extension: '101' }, (body) =>
    asAcme('POST', '/spend-guards', body),
  )
  expect(own.guard).toMatchObject({ name: '101@acme.example', set_by: 'tenant' })
  for (const foreign of [{ customer: 'other customer' }, { tenant: 'other' }, { customer: 2 }]) {
    const body = { ...block, customer: undefined, ...foreign }
    expect((await asAcme('POST', '/spend-guards', body)).status).toBe(400)
  }
  const { guard } = await set({ ...block, customer: 'other customer' })
  expect((await asAcme('GET', `/spend-guards/${guard.guard_id}`)).status).toBe(404)
  expect((await asAcme('DELETE', `/spend-guards/${guard.guard_id}`)).status).toBe(404)
  expect((await asAcme('GET', '/spend-guards')).data()).toMatchObject([
    { guard_id: own.guard.guard_id },
  ])
})

test("a tenant does not take off the platform's brake, nor replace it by a weaker one", async () => {
  const { guard } = await set(block)
  const path = `/spend-guards/${guard.guard_id}`
  expect((await asAcme('GET', '/spend-guards')).data()).toMatchObject([{ set_by: 'platform' }])
  const refused = await asAcme('DELETE', path)
  expect([refused.status, refused.code]).toEqual([403, 'platform_only'])
  // Its own one stands beside it.
  await set({ ...cap, amount: '100' }, (body) => asAcme('POST', '/spend-guards', body))
  expect(await dial('1900555')).toEqual([403, 'spend_guard'])
})

test('a cap of a tenant whose customers pay in several currencies is refused', async () => {
  await made('/customers', { name: 'in euro', tenant: 'acme', currency: 'EUR', numbers: [] })
  const answer = await world.call('POST', '/spend-guards', {
    ...cap,
    customer: undefined,
    tenant: 'acme',
  })
  expect((answer.body as { details: unknown }).details).toMatchObject([{ path: 'amount' }])
})

test('undoing removals brings back no more guards than a tenant may have', async () => {
  const { guard } = await set(block, (body) => asAcme('POST', '/spend-guards', body))
  const removal = await asAcme('DELETE', `/spend-guards/${guard.guard_id}`)
  const { store } = world
  const [row] = await readRows<Selectable<SpendingCapTable>>(store, 'SELECT * FROM spend_guard')
  if (row === undefined) throw new Error('there is no guard')
  for (let index = 0; index < 1_000; index += 1) {
    const other = { guard_uuid: `other ${index}`, prefix: String(10_000 + index) }
    const inForce = { ...row, ...other, ended_at: null, ended_by: null }
    await execute(store, store.db.insertInto('spend_guard').values(inForce))
  }
  const { change_id } = removal.data<Changed>()
  const undone = await asAcme('POST', `/changes/${change_id}/undo`, { reason: 'a mistake' })
  expect([undone.status, undone.code]).toEqual([409, 'too_many_spend_guards'])
})

describe('what the platform brakes', () => {
  const braked = { status: 409, code: 'spend_guard_holds' }
  const guarded = (target: object) =>
    set({ ...block, customer: undefined, duration: 3_600, ...target })
  const remove = (guardId: string) => world.call('DELETE', `/spend-guards/${guardId}`)

  test('an extension is not deleted or renamed by its tenant: made anew, it would have no brake', async () => {
    const path = '/pbx/extensions/1'
    const { guard } = await guarded({ extension: '101@acme.example' })
    expect(await asAcme('DELETE', path)).toMatchObject(braked)
    expect((await asAcme('DELETE', path)).text).toContain(guard.guard_id)
    const renamed = { extension: '199', password: 'long enough' }
    expect(await asAcme('PATCH', path, renamed)).toMatchObject(braked)
    expect(await asAcme('PATCH', path, { display_name: 'Desk' })).toMatchObject({ status: 200 })
    expect((await world.call('GET', '/spend-guards')).data()).toHaveLength(1)
    await remove(guard.guard_id)
    expect(await asAcme('DELETE', path)).toMatchObject({ status: 200 })
  })

  test('a customer is not deleted by its tenant', async () => {
    await made('/customers', { name: 'new', tenant: 'acme', numbers: [] })
    const path = '/customers/3'
    await guarded({ customer: 'new' })
    expect(await asAcme('DELETE', path)).toMatchObject(braked)
    world.tick(3_600_001)
    expect(await asAcme('DELETE', path)).toMatchObject({ status: 200 })
  })

  test('the platform deletes it, and a guard of the tenant does not hold it', async () => {
    await guarded({ extension: '101@acme.example' })
    expect(await world.call('DELETE', '/pbx/extensions/1')).toMatchObject({ status: 200 })
    const own = { extension: '101@other.example', customer: undefined }
    await set({ ...block, ...own }, (body) => world.callAs('other', 'POST', '/spend-guards', body))
    const removed = await world.callAs('other', 'DELETE', '/pbx/extensions/2')
    expect(removed).toMatchObject({ status: 200 })
  })
})

test('while a cap of the platform holds, its tenant changes nothing of what it counts', async () => {
  await made('/rate-plans', { name: 'free plan', tenant: 'acme' })
  await made('/rate-plans', { name: 'euro plan', tenant: 'acme', currency: 'EUR' })
  await made('/rates', { rate_plan: 'free plan', prefix: '', rate_per_minute: '0' })
  await made('/customers', { name: 'another', tenant: 'acme', rate_plan: 'acme plan' })
  const trunk = { name: 'trunk', tenant: 'acme', gateways: [{ host: '203.0.113.9' }] }
  await made('/routing/carriers', { ...trunk, customer: 'acme customer' })
  const { guard } = await set({ ...cap, customer: undefined, tenant: 'acme', prefix: '1' })
  const customers = await world.call('GET', '/customers?search=acme')
  const [{ id: customerId } = { id: 0 }] = customers.data<{ id: number }[]>()
  const rates = await world.call('GET', '/rates?limit=100')
  const rate = rates
    .data<{ id: number; rate_plan: string }[]>()
    .find((each) => each.rate_plan === 'acme plan')
  const tries: [string, string, object?][] = [
    ['PATCH', `/customers/${customerId}`, { rate_plan: 'free plan' }],
    ['PATCH', `/customers/${customerId}`, { numbers: [] }],
    ['PATCH', '/rate-plans/1', { decimals: 2 }],
    ['PATCH', '/pbx/extensions/1', { customer: 'another' }],
    ['PATCH', '/routing/carriers/1', { customer: 'another' }],
    ['PATCH', `/rates/${rate?.id}`, { rate_per_minute: '0' }],
    ['POST', '/rates', { rate_plan: 'acme plan', prefix: '1', rate_per_minute: '0' }],
    ['DELETE', `/rates/${rate?.id}`],
    ['POST', '/customers', { name: 'free', rate_plan: 'free plan', numbers: ['4930101'] }],
    ['POST', '/customers', { name: 'euro', rate_plan: 'euro plan', numbers: ['4930102'] }],
  ]
  for (const [method, path, body] of tries) {
    const { status, code } = await asAcme(method, path, body)
    expect([path, body, status, code]).toEqual([path, body, 409, 'spend_guard_holds'])
  }
  expect(
    (await asAcme('PATCH', `/customers/${customerId}`, { email: 'a@acme.example' })).status,
  ).toBe(200)
  const same = { name: 'second', rate_plan: 'acme plan' }
  expect((await asAcme('POST', '/customers', same)).status).toBe(201)
  expect((await world.call('DELETE', `/spend-guards/${guard.guard_id}`)).status).toBe(200)
  expect(
    (await asAcme('PATCH', `/customers/${customerId}`, { rate_plan: 'free plan' })).status,
  ).toBe(200)
})

describe("while a cap of the platform holds on a tenant's calls", () => {
  const refused = { status: 409, code: 'spend_guard_holds' }
  const changeOf = (answer: Answer): string => {
    if (answer.status >= 300) throw new Error(answer.text)
    return answer.headers.get('x-change-id') ?? ''
  }
  const patched = async (path: string, body: object) => changeOf(await asAcme('PATCH', path, body))
  const capped = () => set({ ...cap, customer: undefined, tenant: 'acme' })

  beforeEach(async () => {
    await made('/rate-plans', { name: 'free plan', tenant: 'acme' })
    await made('/customers', { name: 'second', tenant: 'acme', rate_plan: 'acme plan' })
    const trunk = { name: 'trunk', tenant: 'acme', gateways: [{ host: '203.0.113.9' }] }
    await made('/routing/carriers', { ...trunk, customer: 'acme customer' })
  })

  test('neither mode of an import changes a price', async () => {
    await capped()
    const asTenant = await world.key({ tenant_scope: 'tenant', tenant_slug: 'acme' })
    const asPlatform = await world.key({})
    for (const mode of ['merge', 'replace']) {
      const path = `/api/v1/rates/import?rate_plan=acme+plan&mode=${mode}`
      const body = 'prefix,rate_per_minute\n1,0\n'
      const headers = { 'Content-Type': 'text/csv' }
      const by = (token: string) => world.request(path, { token, method: 'POST', headers, body })
      expect(await by(asTenant)).toMatchObject(refused)
      expect((await by(asPlatform)).status).toBe(200)
    }
  })

  test.each([
    ['another plan of a customer', '/customers/1', 'rate_plan', 'free plan', 'acme plan'],
    ['another price', '/rates/1', 'rate_per_minute', '0', '0.60'],
    ['other decimals of a plan', '/rate-plans/1', 'decimals', 2, 4],
    ['another payer of an extension', '/pbx/extensions/1', 'customer', 'second', 'acme customer'],
    ['another payer of a carrier', '/routing/carriers/1', 'customer', 'second', 'acme customer'],
  ])('%s does not come back by undo', async (_what, path, field, before, after) => {
    await patched(path, { [field]: before })
    const changeId = await patched(path, { [field]: after })
    await capped()
    const undo = { reason: 'a mistake' }
    expect(await asAcme('POST', `/changes/${changeId}/undo`, undo)).toMatchObject(refused)
    expect((await world.call('POST', `/changes/${changeId}/undo`, undo)).status).toBe(200)
  })

  test('no rate goes by the undo of its creation', async () => {
    const rate = { rate_plan: 'acme plan', prefix: '1', rate_per_minute: '1' }
    const changeId = changeOf(await asAcme('POST', '/rates', rate))
    await capped()
    const undone = await asAcme('POST', `/changes/${changeId}/undo`, { reason: 'a mistake' })
    expect(undone).toMatchObject(refused)
  })
})

test('a proposal that was made before a guard of the platform is not approved against it', async () => {
  const rig = await openProposalRig()
  const path = '/api/v1/customers/1'
  const token = rig.people.acme
  await rig.request('/api/v1/rate-plans', { token, body: { name: 'free plan' } })
  const patch = (rate_plan: string) =>
    rig.request(path, { token, method: 'PATCH', body: { rate_plan } })
  await patch('free plan')
  const change_id = (await patch('acme plan')).headers.get('x-change-id')
  const { proposal_id: id } = await rig.proposed('undo_change', { change_id })
  const guard = { tenant: 'acme', prefix: '1', action: 'cap', amount: '1', reason: 'a test' }
  const guarded = await rig.request('/api/v1/spend-guards', { token: rig.root, body: guard })
  expect(guarded.status).toBe(201)
  const answer = await rig.decide('approve', id, token)
  expect([answer.status, answer.code]).toEqual([409, 'spend_guard_holds'])
  const now = await rig.request(path, { token })
  expect(now.data<{ rate_plan: string }>().rate_plan).toBe('acme plan')
})

test("a guard that a global key sets under the slug of a tenant is the platform's", async () => {
  const token = await world.key({})
  const headers = { 'X-Tenant-Slug': 'acme' }
  const answer = await world.request('/api/v1/spend-guards', { token, body: block, headers })
  expect([answer.status, answer.text]).toEqual([201, answer.text])
  const { guard } = answer.data<Changed>()
  expect(guard).toMatchObject({ set_by: 'platform' })
  const path = `/spend-guards/${guard.guard_id}`
  expect((await asAcme('GET', path)).status).toBe(200)
  expect(await asAcme('DELETE', path)).toMatchObject({ status: 403, code: 'platform_only' })
})
