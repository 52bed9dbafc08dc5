import { afterEach, expect, test } from 'vitest'
import type { Origin } from '../../../../engine/routing/routing.ts'
import { type CallRig, granted, startCallRig } from '../../../support/call-rig.ts'
import { sdp } from '../../../support/sip-peer.ts'
import { carrierOrigin } from '../steps.ts'

let rig: CallRig
afterEach(() => rig.stop())

const carrier = (fields: Parameters<typeof carrierOrigin>[0]): Origin =>
  carrierOrigin({ customerId: null, tenantId: null, ...fields })

/** Places a call of this source; what the OCS was asked, and the final answer. */
async function call(origin: Origin) {
  const caller = await rig.caller()
  rig.answers.origin = origin
  caller.request('INVITE', caller.leg(rig.uri('1555')), { body: sdp('offer') })
  const { startLine } = await caller.next((message) => message.status >= 300)
  return { asked: rig.asked.at(-1), startLine }
}

test.each([
  ['its customer pays', carrier({ customerId: 7 }), { customerId: 7, mayNamePayer: false }],
  ['it has none', carrier({}), { customerId: null, mayNamePayer: false }],
  ['From names it', carrier({ payer: 'from_number' }), { customerId: null, mayNamePayer: true }],
  [
    "From names one of its tenant's customers",
    carrier({ payer: 'from_number', tenantId: 3 }),
    { customerId: null, mayNamePayer: true, payerTenantId: 3 },
  ],
  [
    "a tenant's carrier spends the money of its tenant only",
    carrier({ customerId: 7, tenantId: 3 }),
    { customerId: 7, payerTenantId: 3 },
  ],
  ['a trusted source', { kind: 'trusted' } as const, { mayNamePayer: true, payerTenantId: null }],
])('the payer for a call of a carrier: %s', async (_, origin, asked) => {
  rig = await startCallRig()
  expect((await call(origin)).asked).toMatchObject(asked)
})

test.each(['no_payer', 'payer_of_other_tenant'])(
  'a call that the OCS refuses with %s gets 403, and its record says why',
  async (code) => {
    rig = await startCallRig()
    rig.answers.authorize = () => Promise.resolve({ kind: 'denied', code, account: null })
    expect((await call(carrier({}))).startLine).toBe('SIP/2.0 403 Forbidden')
    expect(await rig.record()).toMatchObject({ denialCode: code, billsec: 0 })
  },
)

test('a call without a payer is charged to no wallet after a crash either', async () => {
  rig = await startCallRig()
  const node = await rig.node()
  rig.answers.origin = carrier({})
  const { account } = granted(60) as Extract<ReturnType<typeof granted>, { kind: 'granted' }>
  rig.answers.authorize = () =>
    Promise.resolve({
      kind: 'granted',
      grantedSeconds: Infinity,
      account: { ...account, customerId: null, tenantId: null },
    })
  const caller = await rig.caller()
  caller.request('INVITE', caller.leg(rig.uri('1555')), { body: sdp('offer') })
  node.reply(await node.next('INVITE'), 200, { tag: 'b', body: sdp('answer') })
  await caller.next('200 INVITE')
  expect(rig.opened).toMatchObject([{ isFree: true, customerId: null }])
})
