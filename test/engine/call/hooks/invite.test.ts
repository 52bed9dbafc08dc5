/** The operator's own code decides about a call that begins. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { traceOf } from '../../../../engine/call/trace/trace.ts'
import { startCallRig, type CallRig } from '../../../support/call-rig.ts'
import { gateway } from '../../../support/gateway.ts'
import {
  decides,
  fails,
  namedAgent,
  namedCarrier,
  namedSet,
  ScriptedHooks,
} from '../../../support/scripted-hooks.ts'
import { sdp, type SipPeer } from '../../../support/sip-peer.ts'
import {
  acknowledge,
  addExtensions,
  carrierOf,
  carrierOrigin,
  extensionRecord,
  hangUp,
  home,
  phoneOf,
} from '../steps.ts'

let rig: CallRig
let hooks: ScriptedHooks

beforeEach(async () => {
  hooks = new ScriptedHooks()
  rig = await startCallRig({ hooks })
})
afterEach(() => rig.stop())

async function calls(number = '1555', headers: readonly string[] = []) {
  const caller = await rig.caller()
  const leg = caller.leg(rig.uri(number))
  caller.request('INVITE', leg, { body: sdp('offer'), headers })
  return { caller, leg }
}

/** The peer refuses, and the caller with it. */
async function busy(called: SipPeer, caller: SipPeer) {
  const invite = await called.next('INVITE')
  called.reply(invite, 486, { tag: 'b' })
  await caller.next('486 INVITE')
  return invite
}

const hookNotes = (callUuid = 'uuid-1') =>
  rig.calls.story(callUuid)?.notes.filter(({ what }) => what === 'hook')

test('a hook learns the source, both numbers, the payer and the headers, and no secret', async () => {
  hooks.answers.onInvite = () => ({ kind: 'nothing' })
  hooks.payer = { id: 7, name: 'acme' }
  rig.answers.origin = carrierOrigin()
  const node = await rig.node()
  const { caller } = await calls('1555', ['X-Trunk: a', 'Subject: hello', 'Authorization: x'])
  await busy(node, caller)
  expect(hooks.argumentsOf('onInvite')).toEqual([
    {
      callUuid: 'uuid-1',
      callId: expect.any(String),
      from: expect.any(String),
      fromName: null,
      to: '1555',
      domain: '127.0.0.1',
      source: {
        kind: 'carrier',
        address: '127.0.0.1',
        port: caller.port,
        id: 1,
        name: 'north',
        tenantId: 3,
      },
      customer: { id: 7, name: 'acme' },
      carrier: { id: 1, name: 'north' },
      tenantId: 3,
      headers: expect.objectContaining({ 'x-trunk': 'a', subject: 'hello' }),
    },
  ])
  expect(Object.keys(hooks.argumentsOf('onInvite')[0]?.headers ?? {})).not.toContain(
    'authorization',
  )
  expect(hookNotes()).toEqual([])
})

test('another called number: rights, price, route and record are of that one', async () => {
  hooks.answers.onInvite = decides({ to: '+4930100' })
  const node = await rig.node()
  const { caller } = await calls('1555')
  const invite = await busy(node, caller)
  expect(invite.uri).toContain('sip:+4930100@')
  expect(rig.asked).toMatchObject([{ callee: '+4930100' }])
  expect(await rig.record()).toMatchObject({ calledNumber: '+4930100' })
})

test('another shown number and name: the payer is that of the original caller', async () => {
  hooks.answers.onInvite = decides({ from: '+49301', fromName: 'Front "desk"' })
  const node = await rig.node()
  const { caller, leg } = await calls('1555', ['P-Asserted-Identity: <sip:4711@carrier.example>'])
  const invite = await busy(node, caller)
  expect(invite.get('From')).toContain('"Front \\"desk\\"" <sip:+49301@')
  expect(invite.get('P-Asserted-Identity')).toContain('sip:+49301@')
  expect(leg.from).not.toContain('+49301')
  expect(rig.asked).toMatchObject([{ caller: '4711' }])
  expect(await rig.record()).toMatchObject({ callerNumber: '4711' })
})

test('a caller that hides its number stays hidden, whatever number a hook shows', async () => {
  hooks.answers.onInvite = decides({ from: '+49301', fromName: 'Desk' })
  rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
  addExtensions(rig, extensionRecord('101'), extensionRecord('102'))
  const phone = await phoneOf(rig, '102')
  const caller = await rig.caller()
  const leg = { ...caller.leg(`sip:102@${home}`) }
  leg.from = '"Anonymous" <sip:anonymous@anonymous.invalid>;tag=h'
  caller.request('INVITE', leg, { body: sdp('offer') })
  const invite = await busy(phone, caller)
  expect(invite.get('From')).toContain('anonymous.invalid')
  expect(invite.text).not.toContain('+49301')
})

test('a refusal ends the call with its status; the peer does not learn more', async () => {
  hooks.answers.onInvite = decides({
    refuse: { status: 603, reason: 'Not today' },
    tags: { why: 'hours' },
  })
  const node = await rig.node()
  rig.answers.origin = carrierOrigin()
  const { caller } = await calls()
  const answer = await caller.next('603 INVITE')
  expect(answer.text).toContain('603 Not today')
  expect(answer.get('Warning')).toBe('')
  expect(node.inbox).toEqual([])
  expect(rig.asked).toEqual([])
  expect(await rig.record()).toMatchObject({
    denialCode: 'hook_refused',
    sipCode: 603,
    tenantId: 3,
    tags: { why: 'hours' },
  })
})

test.each([
  ['set', decides({ set: 'sales' })],
  ['set by number', decides({ set: 4 })],
])('a call goes to the %s that a hook names', async (_, answer) => {
  hooks.sets = [namedSet(4, 'sales')]
  hooks.answers.onInvite = answer
  rig.answers.inbound = { kind: 'extension', extension: '1', tenantId: null, domain: null }
  const node = await rig.node()
  const { caller } = await calls()
  await busy(node, caller)
  expect(rig.asked).toMatchObject([{ callee: '1555' }])
})

test('carriers are called in the order of a hook, at the price of the called number', async () => {
  hooks.carriers = [namedCarrier(5, 'south'), namedCarrier(9, 'north')]
  hooks.answers.onInvite = decides({ carriers: ['south', 9] })
  rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1 }
  const [north, south] = [await rig.caller(), await rig.caller()]
  const at = ({ port }: SipPeer) => `sip:127.0.0.1:${port};transport=udp`
  rig.answers.outbound = {
    kind: 'gateways',
    isEmergency: false,
    gateways: [
      gateway({ carrierId: 8, gatewayId: 8, uri: 'sip:127.0.0.1:9;transport=udp' }),
      gateway({ carrierId: 9, gatewayId: 9, uri: at(north) }),
      gateway({ carrierId: 5, gatewayId: 5, carrierName: 'south', uri: at(south) }),
    ],
  }
  const { caller } = await calls()
  south.reply(await south.next('INVITE'), 503, { tag: 's' })
  await busy(north, caller)
  expect(await rig.record()).toMatchObject({ attempts: [{ status: 503 }, { status: 486 }] })
  expect(rig.asked).toMatchObject([{ callee: '1555', sentAs: expect.any(Function) }])
})

test('carriers without a way for the number are noted, and are a finding where none is left', async () => {
  hooks.carriers = [namedCarrier(5, 'south'), namedCarrier(9, 'north'), namedCarrier(6, 'east')]
  hooks.answers.onInvite = decides({ carriers: ['south', 'north', 6] })
  rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1 }
  const north = await rig.caller()
  const uri = `sip:127.0.0.1:${north.port};transport=udp`
  const gateways = [gateway({ carrierId: 9, gatewayId: 9, uri })]
  rig.answers.outbound = { kind: 'gateways', isEmergency: false, gateways }
  const { caller } = await calls()
  await busy(north, caller)
  const why =
    'the carriers south, 6 are left out: ' +
    'no outbound route leads the number to a gateway there that takes calls'
  expect(hookNotes()).toMatchObject([{ decision: {} }, { failed: why, by: 'hooks.ts' }])
  expect(hooks.useless).toEqual([])
  rig.answers.outbound = { kind: 'none' }
  await (await calls()).caller.next('404 INVITE')
  expect(hooks.useless).toEqual([
    'hooks.ts, onInvite: no outbound route leads the number to one of its carriers',
  ])
})

test('an extension is called; for a phone of its tenant free, as if it had dialled it', async () => {
  addExtensions(rig, extensionRecord('101'), extensionRecord('102'))
  hooks.answers.onInvite = decides({ extension: '102' })
  rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
  const phone = await phoneOf(rig, '102')
  const { caller } = await calls('+4930100')
  await busy(phone, caller)
  expect(rig.asked).toEqual([])
  expect(await rig.record()).toMatchObject({ isFree: true, tenantId: 3, direction: 'internal' })
})

test('an extension that a hook chooses for a call from outside is paid by the called number', async () => {
  addExtensions(rig, extensionRecord('102'))
  hooks.answers.onInvite = decides({ extension: `102@${home}` })
  rig.answers.origin = carrierOrigin()
  const phone = await phoneOf(rig, '102')
  const { caller } = await calls('+4930100')
  await busy(phone, caller)
  expect(rig.asked).toMatchObject([{ callee: '+4930100', customerId: 7 }])
  expect(await rig.record()).toMatchObject({ isFree: false, direction: 'inbound' })
})

test('an agent is called, by its name', async () => {
  hooks.agents = [namedAgent(6, 'desk')]
  hooks.answers.onInvite = decides({ agent: 'desk' })
  const agent = await rig.caller()
  const uri = `sip:desk@127.0.0.1:${agent.port};transport=udp`
  rig.answers.agent = {
    kind: 'agent',
    agent: { kind: 'agent', agentId: 6, name: 'desk', tenantId: null, uri },
  }
  const { caller } = await calls()
  await busy(agent, caller)
  expect(rig.asked).toMatchObject([{ callee: '1555' }])
})

test('a URI outside is called as it is written, at the price of the called number', async () => {
  const partner = await rig.caller()
  rig.answers.foreign = ['127.0.0.1']
  hooks.answers.onInvite = decides({
    uri: `sip:desk@127.0.0.1:${partner.port};transport=udp;maddr=127.0.0.1`,
  })
  const { caller } = await calls()
  const invite = await busy(partner, caller)
  expect(invite.uri).toBe(`sip:desk@127.0.0.1:${partner.port};transport=udp`)
  expect(invite.get('To')).toBe(`<sip:desk@127.0.0.1:${partner.port}>`)
  expect(rig.asked).toMatchObject([{ callee: '1555' }])
})

test('headers of a hook reach every called destination, in place of those received', async () => {
  hooks.answers.onInvite = decides({ headers: { 'X-Crm-Id': '42', Subject: 'Order 7' } })
  const [first, second] = [await rig.node(), await rig.node()]
  const { caller } = await calls('1555', ['Subject: hello', 'X-Secret: 1'])
  const toFirst = await first.next('INVITE')
  first.reply(toFirst, 503, { tag: 'a' })
  const toSecond = await busy(second, caller)
  for (const invite of [toFirst, toSecond]) {
    expect(invite.get('X-Crm-Id')).toBe('42')
    expect(invite.get('Subject')).toBe('Order 7')
    expect(invite.text.match(/subject/gi)).toHaveLength(1)
    expect(invite.text).not.toContain('X-Secret')
  }
})

test('tags stand in the live call, its events and its record', async () => {
  hooks.answers.onInvite = decides({ tags: { crm: '42' } })
  const node = await rig.node()
  const { caller, leg } = await calls()
  node.reply(await node.next('INVITE'), 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg, node)
  expect(rig.calls.find('uuid-1')?.tags).toEqual({ crm: '42' })
  expect(rig.opened.at(-1)?.tags).toEqual({ crm: '42' })
  await hangUp(caller, leg, node)
  expect(await rig.record()).toMatchObject({ tags: { crm: '42' } })
  expect(
    rig.events.map((event) => ('call' in event ? event.call.tags : event.record.tags)),
  ).toEqual(rig.events.map(() => ({ crm: '42' })))
})

test('tags and the choice of recording survive a crash of the process', async () => {
  hooks.answers.onInvite = decides({ tags: { crm: '42' }, record: true })
  const node = await rig.node()
  const { caller, leg } = await calls()
  node.reply(await node.next('INVITE'), 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg, node)
  await rig.settle()
  const again = await startCallRig({
    after: { ...rig, aliveAt: rig.time.now() },
  })
  expect(again.restored.restored).toBe(1)
  expect(again.calls.call('uuid-1')).toMatchObject({ tags: { crm: '42' }, isToBeRecorded: true })
  again.control.saveAll()
  await again.stop()
})

test('without a hook nothing is asked, and the INVITE goes out in the same turn', async () => {
  const node = await rig.node()
  const { caller } = await calls()
  await busy(node, caller)
  expect(hooks.asked).toEqual([])
  expect(await rig.record()).toMatchObject({ tags: undefined })
})

test('emergency numbers, unknown sources and what would be refused anyway ask no hook', async () => {
  hooks.answers.onInvite = decides({ refuse: { status: 403 } })
  rig.answers.emergencyNumber = '112'
  const node = await rig.node()
  const { caller } = await calls('112')
  await busy(node, caller)
  rig.answers.origin = { kind: 'unknown' }
  const stranger = await calls()
  await stranger.caller.next('403 INVITE')
  rig.answers.origin = { kind: 'trusted' }
  rig.answers.unserved = 'storage_unavailable'
  const late = await calls()
  await late.caller.next('503 INVITE')
  expect(hooks.asked).toEqual([])
})

test('a hook that fails: the call goes on as without it, and the trace says so', async () => {
  hooks.answers.onInvite = fails('continue')
  const node = await rig.node()
  const { caller } = await calls()
  await busy(node, caller)
  const failure = {
    hook: 'onInvite',
    by: 'hooks.ts',
    failed: 'hooks.ts:3: it threw',
    fallback: 'continue',
  }
  expect(hookNotes()).toMatchObject([failure])
  const { calls: known, messages } = rig
  const trace = await traceOf('uuid-1', { calls: known, messages, pause: () => Promise.resolve() })
  expect(trace?.entries).toContainEqual(
    expect.objectContaining({ what: 'hook', detail: { ...failure, decision: null } }),
  )
  expect(rig.warnings).toMatchObject([{ message: 'a hook has failed', hook: 'onInvite' }])
})

test('a hook that fails and must not: 503 with Retry-After', async () => {
  hooks.answers.onInvite = fails('refuse')
  const node = await rig.node()
  const { caller } = await calls()
  expect((await caller.next('503 INVITE')).get('Retry-After')).toBe('5')
  expect(node.inbox).toEqual([])
  expect(await rig.record()).toMatchObject({ denialCode: 'hook_failed', sipCode: 503 })
})

test('a caller that cancels while the hook thinks has cancelled, and nobody is called', async () => {
  let decide = (): void => undefined
  hooks.answers.onInvite = () =>
    new Promise((resolve) => (decide = () => resolve({ kind: 'nothing' })))
  const node = await rig.node()
  const { caller, leg } = await calls()
  await rig.until(() => hooks.asked.length === 1)
  caller.request('CANCEL', leg)
  await caller.next('487 INVITE')
  await rig.until(() => rig.calls.call('uuid-1')?.end !== undefined)
  decide()
  expect(await rig.record()).toMatchObject({ disposition: 'CANCELED', hangupBy: 'caller' })
  expect([node.inbox, rig.asked]).toEqual([[], []])
})

test('a copy of an INVITE asks the hook once', async () => {
  let decide = (): void => undefined
  hooks.answers.onInvite = () =>
    new Promise((resolve) => (decide = () => resolve({ kind: 'nothing' })))
  const node = await rig.node()
  const caller = await rig.caller()
  const text = caller.request('INVITE', caller.leg(rig.uri('1555')), { body: sdp('offer') })
  await rig.until(() => hooks.asked.length === 1)
  caller.send(text)
  await rig.settle()
  decide()
  await busy(node, caller)
  expect(hooks.asked).toHaveLength(1)
})

test('limits that count calls are taken after the hook: a refused call fills none', async () => {
  hooks.answers.onInvite = decides({ refuse: { status: 403 } })
  rig.answers.origin = carrierOrigin()
  rig.answers.admitsCarrier = false
  const { caller } = await calls()
  await caller.next('403 INVITE')
  hooks.answers.onInvite = () => ({ kind: 'nothing' })
  const next = await calls()
  await next.caller.next('503 INVITE')
})

test('a call that is drained away while the hook thinks is refused as any other', async () => {
  let decide = (): void => undefined
  hooks.answers.onInvite = () =>
    new Promise((resolve) => (decide = () => resolve({ kind: 'nothing' })))
  const { caller } = await calls()
  await rig.until(() => hooks.asked.length === 1)
  rig.answers.unserved = 'node_fenced'
  decide()
  await caller.next('503 INVITE')
  expect(await rig.record()).toMatchObject({ denialCode: 'node_fenced' })
})

test('where nothing can be recorded, a hook that wants it is told in the trace', async () => {
  hooks.answers.onInvite = decides({ record: true })
  hooks.isRecordable = false
  const node = await rig.node()
  const { caller } = await calls()
  await busy(node, caller)
  expect(hookNotes()).toMatchObject([
    { decision: { record: true } },
    { failed: expect.stringContaining('RTPENGINE') },
  ])
})

test('a hook is asked about a click-to-call before any phone rings', async () => {
  addExtensions(rig, extensionRecord('101'), extensionRecord('102'))
  hooks.answers.onInvite = decides({ to: '102', headers: { 'X-A': '1' }, tags: { a: '1' } })
  const [source, phone] = [await phoneOf(rig, '101'), await phoneOf(rig, '102')]
  const request = { domain: home, extension: '101', autoAnswer: false, ringMs: 60_000 }
  await rig.control.originate({
    ...request,
    destination: '15550100',
    callerNumber: undefined,
    callerName: undefined,
  })
  const toSource = await source.next('INVITE')
  expect(toSource.get('X-A')).toBe('')
  expect(hooks.argumentsOf('onInvite')).toMatchObject([
    { to: '15550100', source: { kind: 'api', address: '', port: 0, id: 101, name: `101@${home}` } },
  ])
  source.reply(toSource, 200, { tag: 'a', body: sdp('offer') })
  const invite = await phone.next('INVITE')
  expect(invite.get('X-A')).toBe('1')
  expect(rig.calls.find('uuid-1')).toMatchObject({ calledNumber: '102', tags: { a: '1' } })
  phone.reply(invite, 486, { tag: 'b' })
  await source.next('ACK')
  source.reply(await source.next('BYE'), 200)
  await rig.record()
  hooks.answers.onInvite = decides({ refuse: { status: 403 } })
  const refused = await rig.control.originate({
    ...request,
    destination: '15550100',
    callerNumber: undefined,
    callerName: undefined,
  })
  expect(refused).toEqual({ kind: 'denied', code: 'hook_refused' })
})

test('a call that a phone forwards to the outside asks for itself', async () => {
  addExtensions(rig, extensionRecord('101'), extensionRecord('102'))
  rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
  hooks.answers.onInvite = ({ source }) =>
    source.kind === 'forward'
      ? decides({ to: '+4930', tags: { by: 'forward' } })()
      : decides({ headers: { 'X-A': '1' } })()
  const phone = await phoneOf(rig, '102')
  const carrier = await carrierOf(rig)
  const outbound = rig.answers.outbound
  rig.answers.outboundOf = (number) => (number === '+4930' ? outbound : { kind: 'none' })
  const caller = await rig.caller()
  caller.request('INVITE', caller.leg(`sip:102@${home}`), { body: sdp('offer') })
  const invite = await phone.next('INVITE')
  phone.contact = 'tel:+15550123'
  phone.reply(invite, 302, { tag: 'f' })
  const forwarded = await carrier.next('INVITE')
  expect([invite.get('X-A'), forwarded.get('X-A')]).toEqual(['1', ''])
  expect(hooks.argumentsOf('onInvite')).toMatchObject([
    { source: { kind: 'extension' } },
    { source: { kind: 'forward', id: 102 }, to: '+15550123' },
  ])
  carrier.reply(forwarded, 486, { tag: 'c' })
  await caller.next('486 INVITE')
  const records = [await rig.record(), await rig.record()]
  expect(records.find(({ tags }) => tags !== undefined)).toMatchObject({
    calledNumber: '+4930',
    tags: { by: 'forward' },
  })
})
