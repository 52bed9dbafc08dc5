/** A proxy that authenticates the users of some tenants (`EDGE_PROXIES`): how far it reaches. */
import { expect, test } from 'vitest'
import { servedTenant } from '../../../engine/call/inbound/route.ts'
import { isSame, mayReplace } from '../../../engine/call/transfer/identity.ts'
import type { Origin } from '../../../engine/routing/routing.ts'
import { granted } from '../../support/call-rig.ts'
import { sdp } from '../../support/sip-peer.ts'
import { establish, refer, replacing } from '../../support/transfer-rig.ts'
import { nextNode, rig, rigForEachTest } from './steps.ts'

rigForEachTest()

const proxy = (...tenantIds: number[]): Extract<Origin, { kind: 'proxy' }> => ({
  kind: 'proxy',
  tenantIds,
})

test('its From names customers of the tenants that it serves only', async () => {
  await establish(rig, proxy(3, 4))
  expect(rig.asked.at(-1)).toMatchObject({ caller: '101', customerId: null, payerTenantId: [3, 4] })
})

test('of several tenants the payer tells which one calls; without a payer the call is refused', async () => {
  rig.answers.authorize = () =>
    Promise.resolve({
      kind: 'granted',
      grantedSeconds: Infinity,
      account: {
        customerId: null,
        tenantId: null,
        ratePrefix: null,
        currency: null,
        isUnauthorizedByOcs: false,
      },
    })
  await rig.node()
  const caller = await rig.caller()
  rig.answers.origin = proxy(3, 4)
  caller.request('INVITE', caller.leg(rig.uri('1555')), { body: sdp('offer') })
  await caller.next('403 INVITE')
  expect(await rig.record()).toMatchObject({ denialCode: 'no_payer' })
  const account = (tenantId: number | null) => {
    const verdict = granted(60)
    return verdict.kind === 'granted' ? { ...verdict.account, tenantId } : null
  }
  expect(servedTenant(proxy(3, 4), account(4))).toBe(4)
  expect(servedTenant(proxy(3, 4), account(5))).toBeNull()
  expect(servedTenant(proxy(3), account(null))).toBe(3)
})

test('it takes a place in calls of its tenants, and in no other', () => {
  const dispatcher = { setRecord: () => undefined }
  const may = (tenantId: number | null) => mayReplace(proxy(3, 4), tenantId, { dispatcher })
  expect([3, 4, 5, null].map(may)).toEqual([true, true, false, false])
})

test.each([
  ['one of its tenants', [3], '488 INVITE'],
  ['another tenant', [4], '403 INVITE'],
])('INVITE with Replaces of a proxy for a call of %s', async (_, tenants, expected) => {
  const { aLeg, b } = await establish(rig)
  rig.answers.caller = { kind: 'stranger' }
  rig.answers.origin = proxy(...tenants)
  const x = await rig.caller()
  const headers = [`Replaces: ${replacing(aLeg)}`]
  x.request('INVITE', x.leg(rig.uri('x')), { headers, body: sdp('offer of x') })
  if (expected === '488 INVITE') b.reply(await b.next('INVITE'), 488)
  await x.next(expected)
})

test('its users transfer on the account of their tenant, and join none of another user', async () => {
  const { a, aLeg } = await establish(rig, proxy(3, 4))
  const c = await nextNode(rig)
  await refer(a, aLeg, 'sip:15550100@acme.example')
  await c.next('INVITE')
  // The payer of its call was of tenant 3.
  expect(rig.asked.at(-1)).toMatchObject({ caller: '101', payerTenantId: [3] })
  const user = (number: string, tenantId: number) => ({ origin: proxy(tenantId), number, name: '' })
  expect(isSame(user('101', 3), user('101', 3))).toBe(true)
  expect(isSame(user('101', 3), user('102', 3))).toBe(false)
  expect(isSame(user('101', 3), user('101', 4))).toBe(false)
})
