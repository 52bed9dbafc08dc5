/** No answer of a hook makes a call free, reaches what the call may not, or spends another's money. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Origin } from '../../../../engine/routing/routing.ts'
import type { HookAnswer, InviteDecision } from '../../../../schema/contracts/hooks.ts'
import { startCallRig, type CallRig } from '../../../support/call-rig.ts'
import {
  decides,
  namedAgent,
  namedCarrier,
  namedSet,
  ScriptedHooks,
} from '../../../support/scripted-hooks.ts'
import { sdp, type SipPeer } from '../../../support/sip-peer.ts'
import {
  addExtensions,
  carrierOf,
  carrierOrigin,
  denied,
  extensionRecord,
  home,
  phoneOf,
} from '../steps.ts'

let rig: CallRig
let hooks: ScriptedHooks
/** A node of the default set: where calls go without a hook. */
let node: SipPeer

const others = 'other.example'
const elsewhere = { tenantId: 4, domain: others, extensionId: 201 }

beforeEach(async () => {
  hooks = new ScriptedHooks()
  rig = await startCallRig({ hooks })
  node = await rig.node()
  addExtensions(
    rig,
    extensionRecord('101'),
    extensionRecord('102'),
    extensionRecord('201', elsewhere),
  )
  hooks.sets = [namedSet(4, 'sales', 4), namedSet(5, 'common')]
  hooks.carriers = [namedCarrier(5, 'south', 4), namedCarrier(9, 'north')]
  hooks.agents = [namedAgent(6, 'desk', 4)]
})
afterEach(() => rig.stop())

const phone = () => {
  rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
}

async function calls(number: string) {
  const caller = await rig.caller()
  caller.request('INVITE', caller.leg(rig.uri(number)), { body: sdp('offer') })
  return caller
}

const refusing = (decision: InviteDecision, tenantId?: number) =>
  decides(decision, { fallback: 'refuse', ...(tenantId !== undefined && { tenantId }) })

const whyFailed = () =>
  rig.calls
    .story('uuid-1')
    ?.notes.flatMap((note) => (note.what === 'hook' ? (note.failed ?? []) : []))

const unreachable: readonly (readonly [string, InviteDecision])[] = [
  ['set', { set: 'sales' }],
  ['set by its number', { set: 4 }],
  ['carrier', { carriers: ['north', 'south'] }],
  ['carrier by its id', { carriers: [5] }],
  ['agent', { agent: 'desk' }],
  ['extension', { extension: `201@${others}` }],
]

test.each(unreachable)(
  'the %s of another tenant is unknown, as what does not exist',
  async (_, decision) => {
    phone()
    hooks.answers.onInvite = refusing(decision)
    const caller = await calls('+4930100')
    await caller.next('503 INVITE')
    expect(whyFailed()).toEqual([
      expect.stringMatching(/^there is no .* within reach of the call$/),
    ])
    expect(await rig.record()).toMatchObject({ denialCode: 'hook_failed' })
    expect(node.inbox).toEqual([])
  },
)

test.each(unreachable)(
  'the webhook of a tenant reaches no %s of another one, whoever calls',
  async (_, decision) => {
    hooks.answers.onInvite = refusing(decision, 3)
    const caller = await calls('+4930100')
    await caller.next('503 INVITE')
    expect(whyFailed()).toEqual([expect.stringContaining('within reach')])
  },
)

test('what does not exist: the call goes on as without the hook, where that is its fallback', async () => {
  hooks.answers.onInvite = decides({ set: 'nowhere' })
  const caller = await calls('1555')
  node.reply(await node.next('INVITE'), 486, { tag: 'b' })
  await caller.next('486 INVITE')
  expect(whyFailed()).toEqual(['there is no set nowhere within reach of the call'])
})

test('what a decision names in vain is told to whose field it is', async () => {
  const byField = { to: 'hooks.ts', set: 'routing webhook 4' }
  hooks.answers.onInvite = () => ({
    ...decides({ to: '1555', set: 'nowhere' })(),
    by: 'hooks.ts, routing webhook 4',
    byField,
  })
  const caller = await calls('1555')
  node.reply(await node.next('INVITE'), 486, { tag: 'b' })
  await caller.next('486 INVITE')
  expect(hooks.useless).toEqual([
    'routing webhook 4, onInvite: there is no set nowhere within reach of the call',
  ])
})

test('an extension without a domain is that of the only domain in reach that has it', async () => {
  const [here, there] = [extensionRecord('102'), extensionRecord('102', elsewhere)]
  addExtensions(rig, here, there)
  hooks.extensions = [extensionRecord('201', elsewhere), here, there]
  hooks.answers.onInvite = refusing({ extension: '201' })
  const phoneThere = await phoneOf(rig, '201', { domain: others })
  const caller = await calls('+4930100')
  phoneThere.reply(await phoneThere.next('INVITE'), 486, { tag: 'p' })
  await caller.next('486 INVITE')
})

test('an extension that several domains in reach have, or none, is not guessed', async () => {
  const [here, there] = [extensionRecord('103'), extensionRecord('103', elsewhere)]
  hooks.extensions = [here, there]
  hooks.answers.onInvite = refusing({ extension: '103' })
  await (await calls('+4930100')).next('503 INVITE')
  expect(whyFailed()).toEqual(['several domains have an extension 103: name one, as 103@domain'])
  hooks.answers.onInvite = refusing({ extension: '999' })
  await (await calls('+4930100')).next('503 INVITE')
  expect(hooks.useless.at(-1)).toContain('there is no extension 999 within reach of the call')
})

test("a tenant's webhook reaches an extension of its own domains alone, without naming one", async () => {
  hooks.extensions = [extensionRecord('201', elsewhere)]
  hooks.answers.onInvite = refusing({ extension: '201' }, 3)
  await (await calls('+4930100')).next('503 INVITE')
  expect(whyFailed()).toEqual(['there is no extension 201 within reach of the call'])
})

test('a priced number that is changed into an extension is free only inside its tenant', async () => {
  hooks.answers.onInvite = decides({ to: '102' })
  rig.answers.authorize = denied('insufficient_funds')
  rig.answers.origin = carrierOrigin()
  const caller = await calls('+4930100')
  await caller.next('402 INVITE')
  expect(rig.asked).toMatchObject([{ callee: '102', customerId: 7 }])
})

test('a free number that is changed into a priced one is paid', async () => {
  phone()
  await carrierOf(rig)
  rig.answers.knowsNumber = true
  rig.answers.authorize = denied('insufficient_funds')
  hooks.answers.onInvite = decides({ to: '+4930100' })
  const caller = await calls('102')
  await caller.next('402 INVITE')
  expect(rig.asked).toMatchObject([{ caller: '101', callee: '+4930100' }])
})

test.each<[string, InviteDecision]>([
  ['set', { set: 'common' }],
  ['uri', { uri: 'sip:198.51.100.7' }],
  ['carriers', { carriers: ['north'] }],
])(
  'a free number that a hook sends to a %s is paid: nobody could have dialled that',
  async (_, decision) => {
    phone()
    rig.answers.foreign = ['198.51.100.7']
    rig.answers.authorize = denied('insufficient_funds')
    hooks.answers.onInvite = decides(decision)
    const caller = await calls('102')
    await caller.next('402 INVITE')
    expect(rig.asked).toMatchObject([{ caller: '101', callee: '102', customerId: 7 }])
  },
)

test("the number of another customer's that a hook shows does not pay", async () => {
  hooks.answers.onInvite = decides({ from: '+49777' })
  const caller = await calls('1555')
  node.reply(await node.next('INVITE'), 486, { tag: 'b' })
  await caller.next('486 INVITE')
  expect(rig.asked).toMatchObject([{ caller: 'peer' }])
})

test('a call from outside that nobody pays for does not go out again by a carrier', async () => {
  const carrier = await carrierOf(rig)
  rig.answers.origin = carrierOrigin({ payer: 'customer', customerId: null })
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
  hooks.answers.onInvite = decides({ carriers: ['north'] })
  const caller = await calls('+4930100')
  await caller.next('403 INVITE')
  expect(await rig.record()).toMatchObject({ denialCode: 'no_payer' })
  expect(carrier.inbox).toEqual([])
})

test('carriers to which no route of the payer leads the number take no call', async () => {
  hooks.carriers = [namedCarrier(8, 'west')]
  const carrier = await carrierOf(rig)
  rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1 }
  hooks.answers.onInvite = decides({ carriers: ['west'] })
  const caller = await calls('+4930100')
  await caller.next('404 INVITE')
  expect(await rig.record()).toMatchObject({ denialCode: 'no_route' })
  expect(carrier.inbox).toEqual([])
})

test("a URI does not lead to a carrier's gateway, which only priced routes reach", async () => {
  const gateway = await rig.caller()
  rig.answers.foreign = ['127.0.0.1']
  rig.answers.gatewayBehind = (uri) => (uri.includes(`:${gateway.port}`) ? 'north' : undefined)
  hooks.answers.onInvite = decides({ uri: `sip:x@127.0.0.1:${gateway.port}` })
  const caller = await calls('+4930100')
  await caller.next('403 INVITE')
  expect(await rig.record()).toMatchObject({ denialCode: 'unpriced_gateway' })
  expect(gateway.inbox).toEqual([])
})

test('maddr of a URI is its destination, and not another one than what was checked', async () => {
  rig.answers.foreign = ['partner.example', '198.51.100.7']
  rig.answers.allowed = ['partner.example']
  hooks.answers.onInvite = refusing({ uri: 'sip:x@partner.example;maddr=198.51.100.7' }, 3)
  const caller = await calls('+4930100')
  await caller.next('503 INVITE')
  expect(whyFailed()).toEqual(['uri names a domain that the platform has not allowed'])
})

test.each([
  ['a domain that the platform has not allowed', 'sip:x@evil.example', 'has not allowed'],
  ['an inward address', 'sip:x@10.0.0.1', 'has not allowed'],
  ['a domain of a tenant', `sip:101@${home}`, 'leads back'],
  ['this platform', 'sip:101@sbc.example', 'leads back'],
])('the webhook of a tenant does not reach %s by a URI', async (_, uri, why) => {
  rig.answers.foreign = ['evil.example', '10.0.0.1']
  hooks.answers.onInvite = refusing({ uri }, 3)
  const caller = await calls('+4930100')
  await caller.next('503 INVITE')
  expect(whyFailed()).toEqual([expect.stringContaining(why)])
})

test('no hook makes an emergency call, which would skip wallet and limits', async () => {
  phone()
  rig.answers.emergencyNumber = '112'
  hooks.answers.onInvite = refusing({ to: '112' })
  const caller = await calls('+4930100')
  await caller.next('503 INVITE')
  expect(whyFailed()).toEqual([expect.stringContaining('emergency number')])
})

test('a node that sends a changed number back is a loop, by either number', async () => {
  hooks.answers.onInvite = decides({ to: '+4930100' })
  const caller = await calls('1555')
  const invite = await node.next('INVITE')
  rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1 }
  const mark = `X-Call-UUID: ${invite.get('X-Call-UUID')}`
  for (const number of ['+4930100', '1555']) {
    node.request('INVITE', node.leg(rig.uri(number)), { body: sdp('offer'), headers: [mark] })
    await node.next('482 INVITE')
  }
  expect(hooks.asked).toHaveLength(1)
  node.reply(invite, 486, { tag: 'b' })
  await caller.next('486 INVITE')
})

test('a hook cannot make a call that of a supervisor, which is never recorded', async () => {
  hooks.answers.onInvite = refusing({ to: 'spy:uuid-9' })
  const caller = await calls('1555')
  await caller.next('503 INVITE')
  expect(whyFailed()).toEqual(['to is neither a telephone number nor a name'])
})

const proxy: Origin = { kind: 'proxy', tenantIds: [3, 5] }

test('a proxy reaches no set of a tenant that it does not serve', async () => {
  rig.answers.origin = proxy
  hooks.answers.onInvite = refusing({ set: 'sales' })
  const caller = await calls('1555')
  await caller.next('503 INVITE')
  expect(whyFailed()).toEqual([expect.stringContaining('within reach')])
})

test('a test of a carrier asks no hook: what is tested has been chosen', async () => {
  const answer = (): HookAnswer<InviteDecision> => {
    throw new Error('it was asked')
  }
  hooks.answers.onInvite = answer
  const source = await phoneOf(rig, '101')
  await carrierOf(rig)
  const asked = await rig.control.originate({
    domain: home,
    extension: '101',
    destination: '+4930100',
    autoAnswer: false,
    callerNumber: undefined,
    callerName: undefined,
    ringMs: 1_000,
    testedCarrierId: 9,
  })
  expect(asked).toMatchObject({ kind: 'originating' })
  expect(hooks.asked).toEqual([])
  source.reply(await source.next('INVITE'), 486, { tag: 'a' })
  await rig.record()
})
