import type Srf from 'drachtio-srf'
import { expect, test } from 'vitest'
import { startApplicationRig } from '../../../support/application-rig.ts'
import { extensionRecord } from '../../call/steps.ts'
import { numbersOf, RiggedRules } from '../../../support/caller-rules.ts'
import type { CallRig } from '../../../support/call-rig.ts'
import { gateway } from '../../../support/gateway.ts'
import { sdp, type Leg, type SipPeer } from '../../../support/sip-peer.ts'

type Handler = (
  request: Srf.SrfRequest,
  response: Srf.SrfResponse,
  next: (error?: unknown) => void,
) => unknown

/** The library types `next` as any function. */
const onInvite = (handler: Handler) => (srf: Srf) => srf.use('invite', handler as never)

interface Placed {
  readonly caller: SipPeer
  readonly leg: Leg
}

async function place(
  rig: CallRig,
  number = '1555',
  headers: readonly string[] = [],
): Promise<Placed> {
  const caller = await rig.caller()
  const leg = caller.leg(rig.uri(number))
  caller.request('INVITE', leg, { headers, body: sdp('offer') })
  return { caller, leg }
}

async function answered({ caller, leg }: Placed): Promise<void> {
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('ACK', leg)
}

test('an application answers a call, which is charged and recorded as any other', async () => {
  let caller = ''
  const rig = await startApplicationRig(
    onInvite(async (request, response) => {
      caller = `${request.callingNumber} ${request.get('Call-ID')}`
      const dialog = await request.srf.createUAS(request, response, { localSdp: sdp('answer') })
      dialog.on('destroy', () => undefined)
    }),
  )
  const placed = await place(rig)
  await answered(placed)
  expect(caller).toBe(`peer ${placed.leg.callId}`)
  placed.caller.request('BYE', placed.leg)
  await placed.caller.next('200 BYE')
  const record = await rig.record()
  expect(record).toMatchObject({ disposition: 'ANSWERED', hangupBy: 'caller', customerId: 7 })
  expect(record.attempts).toMatchObject([{ destination: 'application', status: 200 }])
})

test('what passes the last middleware goes on to the destinations of the product', async () => {
  const rig = await startApplicationRig(onInvite((_request, _response, next) => next()))
  const node = await rig.node()
  const placed = await place(rig)
  node.reply(await node.next('INVITE'), 200, { tag: 'b', body: sdp('answer') })
  await answered(placed)
  await node.next('ACK')
  placed.caller.request('BYE', placed.leg)
  node.reply(await node.next('BYE'), 200)
  const record = await rig.record()
  // An application that lets a call go on is no attempt.
  expect(record.attempts).toMatchObject([{ status: 200 }])
})

test('a final status of the application ends the call, whatever other destinations there are', async () => {
  const rig = await startApplicationRig(
    onInvite((_request, response) =>
      response.send(302, { headers: { Contact: '<sip:other@elsewhere.example>' } }),
    ),
  )
  await rig.node()
  const { caller } = await place(rig)
  const answer = await caller.next('302 INVITE')
  expect(answer.get('Contact')).toBe('<sip:other@elsewhere.example>')
  expect(await rig.record()).toMatchObject({ sipCode: 302, attempts: [{ status: 302 }] })
})

test('headers of a final answer reach the caller, but not those of our own dialog with it', async () => {
  const headers = {
    'Retry-After': '120',
    Reason: 'Q.850;cause=21',
    Warning: '399 pbx "closed"',
    'X-Office': 'closed',
    'Error-Info': '<sip:closed@127.0.0.1>',
    Server: 'mine',
    'Record-Route': '<sip:elsewhere.example;lr>',
    'Session-Expires': '90',
    'X-Tollgate-Call': 'faked',
  }
  const rig = await startApplicationRig(
    onInvite((_request, response) => response.send(486, 'Closed', { headers })),
  )
  const { caller } = await place(rig)
  const answer = await caller.next('486 INVITE')
  const got = Object.keys(headers).filter((name) => answer.get(name) !== '')
  expect(got).toEqual(['Retry-After', 'Reason', 'Warning', 'X-Office', 'Error-Info'])
  expect(answer.get('Warning')).toBe('399 pbx "closed"')
  expect(answer.startLine).toContain('486 Closed')
})

test('a redirection of an application never leads to a gateway of a carrier', async () => {
  const rig = await startApplicationRig(
    onInvite((_request, response) =>
      response.send(302, {
        headers: { Contact: '<sip:1@elsewhere.example>, <sip:1900@192.0.2.50>;q=0.1' },
      }),
    ),
  )
  rig.answers.gatewayBehind = (uri) => (uri.includes('192.0.2.50') ? 'Alpha' : undefined)
  const { caller } = await place(rig)
  const answer = await caller.next('480 INVITE')
  expect(answer.get('Contact')).toBe('')
})

test('the application sees the INVITE as it was received, and no private header', async () => {
  const seen: Record<string, unknown>[] = []
  const rig = await startApplicationRig(
    onInvite((request, response) => {
      const { source_address: address, source_port: port, protocol, raw, body } = request
      const contact = request.getParsedHeader('Contact')[0]?.uri
      seen.push({ address, port, protocol, raw, body, contact, mine: request.get('X-Mine') })
      response.send(486)
    }),
  )
  const faked = ['X-Mine: 1', 'X-Tollgate-Original: e30=', 'X-Call-UUID: uuid-faked']
  const { caller, leg } = await place(rig, '1555', faked)
  await caller.next('486 INVITE')
  const [first] = seen
  const host = { address: '127.0.0.1', port: caller.port, protocol: 'udp' }
  expect(first).toMatchObject({ ...host, mine: '1', body: sdp('offer') })
  expect(first).toMatchObject({ contact: `sip:peer@127.0.0.1:${caller.port}` })
  expect(first?.['raw']).toContain(leg.from)
  expect(first?.['raw']).toContain('X-Call-UUID: uuid-1')
  expect(first?.['raw']).not.toMatch(/X-Tollgate|uuid-faked|secret/i)
})

test('an INVITE as large as a datagram can be reaches the application whole', async () => {
  const seen: (string | undefined)[] = []
  const rig = await startApplicationRig(
    onInvite((request, response) => {
      seen.push(request.get('X-Part-59'))
      response.send(486, { headers: { 'X-Seen': 'yes' } })
    }),
  )
  const value = `"${'é'.repeat(500)}"`
  const { caller } = await place(
    rig,
    '1555',
    Array.from({ length: 60 }, (_, index) => `X-Part-${index}: ${value}`),
  )
  expect((await caller.next('486 INVITE')).get('X-Seen')).toBe('yes')
  expect(seen).toEqual([value])
})

test('a number that no destination has is asked for at the application, then refused', async () => {
  const rig = await startApplicationRig(
    onInvite((request, response, next) =>
      request.calledNumber === '600' ? response.send(486) : next(),
    ),
  )
  const known = await place(rig, '600')
  await known.caller.next('486 INVITE')
  const unknown = await place(rig, '601')
  await unknown.caller.next('503 INVITE')
  await rig.record()
  expect(await rig.record()).toMatchObject({ denialCode: 'no_candidate' })
})

test('a middleware that throws is passed over, or refuses calls where that is the fallback', async () => {
  const broken = onInvite(async () => {
    await Promise.resolve()
    throw new Error('broken')
  })
  const rig = await startApplicationRig(broken)
  const node = await rig.node()
  const { caller } = await place(rig)
  node.reply(await node.next('INVITE'), 486, { tag: 'b' })
  await caller.next('486 INVITE')
  expect(rig.errors).toMatchObject([{ message: 'broken' }])
  const strict = await startApplicationRig(broken, { fallback: 'refuse' })
  await strict.node()
  const refused = await place(strict)
  expect((await refused.caller.next('503 INVITE')).get('Retry-After')).toBe('5')
})

test('nobody but the application can say that a call goes on', async () => {
  const rig = await startApplicationRig(
    onInvite((_request, response) =>
      response.send(404, { headers: { 'X-Tollgate-Continue': 'a guess' } }),
    ),
  )
  await rig.node()
  const { caller } = await place(rig)
  await caller.next('404 INVITE')
  expect(await rig.record()).toMatchObject({ sipCode: 404, attempts: [{ status: 404 }] })
})

test('emergencies never ask the application', async () => {
  const rig = await startApplicationRig(onInvite((_request, response) => response.send(486)))
  const called = await rig.caller()
  rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1 }
  const uri = `sip:127.0.0.1:${called.port}`
  rig.answers.outbound = { kind: 'gateways', isEmergency: true, gateways: [gateway({ uri })] }
  const { caller } = await place(rig, '112')
  called.reply(await called.next('INVITE'), 486, { tag: 'g' })
  await caller.next('486 INVITE')
  expect((await rig.record()).attempts).toHaveLength(1)
})

test('a worker that is lost: calls that it was asked about go on, and those that it has end', async () => {
  const rig = await startApplicationRig(
    onInvite((request, response) =>
      request.calledNumber === '1'
        ? request.srf.createUAS(request, response, { localSdp: sdp('answer') })
        : response.send(180),
    ),
  )
  const node = await rig.node()
  const first = await place(rig, '1')
  await answered(first)
  const second = await place(rig, '2')
  await second.caller.next('180 INVITE')
  await rig.advance(3_000)
  rig.applications.ended(1)
  first.caller.reply(await first.caller.next('BYE'), 200)
  node.reply(await node.next('INVITE'), 486, { tag: 'b' })
  await second.caller.next('486 INVITE')
  const lost = { disposition: 'ANSWERED', billsec: 3, hangupBy: 'system' }
  expect(await rig.record()).toMatchObject({ ...lost, denialCode: 'application_lost' })
})

test('an application that is silent is given up after the time of a node', async () => {
  const rig = await startApplicationRig(onInvite(() => undefined))
  await rig.worker.stop()
  const node = await rig.node()
  const { caller } = await place(rig)
  await rig.until(() => rig.calls.list().length === 1)
  await rig.settle()
  await rig.advance(1_500)
  node.reply(await node.next('INVITE'), 486, { tag: 'b' })
  await caller.next('486 INVITE')
})

test('a stop waits some seconds for an application that says nothing, and not for its whole time', async () => {
  const rig = await startApplicationRig(
    onInvite((request, response) =>
      request.calledNumber === '1' ? response.send(180) : undefined,
    ),
  )
  const node = await rig.node()
  const silent = await place(rig, '2')
  const ringing = await place(rig, '1')
  await ringing.caller.next('180 INVITE')
  const statuses = () =>
    [...rig.calls.world.calls.values()].flatMap(({ dialing }) =>
      (dialing?.attempts ?? []).map(({ status }) => status),
    )
  await rig.until(() => statuses().join() === '100,180')
  let isDrained = false
  void rig.calls.drain(rig.time.now() + 60_000).then(() => (isDrained = true))
  await rig.advance(5_600)
  node.reply(await node.next('INVITE'), 486, { tag: 'b' })
  await silent.caller.next('486 INVITE')
  expect(isDrained).toBe(false)
  ringing.caller.request('CANCEL', ringing.leg)
  await ringing.caller.next('487 INVITE')
  await rig.until(() => isDrained)
})

test('where calls may not go past it, one that an application leaves unanswered is refused, and so is each while none is there', async () => {
  const rig = await startApplicationRig(
    onInvite(() => undefined),
    { fallback: 'refuse' },
  )
  await rig.worker.stop()
  const silent = await place(rig)
  await rig.until(() => rig.calls.list().length === 1)
  await rig.settle()
  await rig.advance(1_500)
  await silent.caller.next('503 INVITE')
  expect(await rig.record()).toMatchObject({ denialCode: 'hook_failed', sipCode: 503 })
  rig.applications.ended(1)
  const missed = await place(rig)
  await missed.caller.next('503 INVITE')
  rig.applications.expect(false)
  const node = await rig.node()
  const free = await place(rig)
  node.reply(await node.next('INVITE'), 486, { tag: 'b' })
  await free.caller.next('486 INVITE')
})

test('a bridged call is priced for the caller as if its phone had dialled', async () => {
  const rig = await startApplicationRig(
    onInvite(async (request, response) => {
      const opts = { proxyRequestHeaders: ['all'] }
      const { uas, uac } = await request.srf.createB2BUA(
        request,
        response,
        'sip:15550000@192.0.2.9:5090',
        opts,
      )
      uas.on('destroy', () => uac.destroy())
      uac.on('destroy', () => uas.destroy())
    }),
  )
  const called = await rig.caller()
  const uri = `sip:127.0.0.1:${called.port}`
  rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
  rig.answers.outbound = { kind: 'gateways', isEmergency: false, gateways: [gateway({ uri })] }
  const placed = await place(rig, '600')
  const invite = await called.next('INVITE')
  expect(invite.text).not.toMatch(/X-Tollgate|secret/i)
  called.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  await answered(placed)
  await called.next('ACK')
  const [, charged] = rig.asked
  expect(charged).toMatchObject({ caller: '101', callee: '15550000', extensionId: 101 })
  placed.caller.request('BYE', placed.leg)
  called.reply(await called.next('BYE'), 200)
  const records = [await rig.record(), await rig.record()]
  expect(records).toContainEqual(
    expect.objectContaining({ sourceAddress: 'application', calledNumber: '15550000' }),
  )
})

test('a call to the address of a node reaches that node, at the price of the number', async () => {
  let port = 0
  const rig = await startApplicationRig(
    onInvite((request, response) =>
      request.srf.createB2BUA(request, response, `sip:1777@127.0.0.1:${port}`, {
        passFailure: true,
      }),
    ),
  )
  const other = await rig.node()
  const node = await rig.node()
  ;({ port } = node)
  rig.answers.origin = carrierWithoutPayer
  const { caller } = await place(rig)
  node.reply(await node.next('INVITE'), 486, { tag: 'b' })
  await caller.next('486 INVITE')
  expect(other.inbox).toEqual([])
  expect(rig.asked.map(({ callee }) => callee)).toEqual(['1555', '1777'])
  const records = [await rig.record(), await rig.record()]
  expect(records).toContainEqual(
    expect.objectContaining({ calledNumber: '1777', direction: 'internal', sipCode: 486 }),
  )
})

test('a bridged call for which nobody pays is refused', async () => {
  const rig = await startApplicationRig(
    onInvite((request, response) =>
      request.srf.createB2BUA(request, response, 'sip:15550000@192.0.2.9', { passFailure: true }),
    ),
  )
  const called = await rig.caller()
  const uri = `sip:127.0.0.1:${called.port}`
  rig.answers.outbound = { kind: 'gateways', isEmergency: false, gateways: [gateway({ uri })] }
  const account = { customerId: null, tenantId: null, ratePrefix: null, currency: null }
  rig.answers.authorize = () =>
    Promise.resolve({
      kind: 'granted',
      grantedSeconds: Infinity,
      account: { ...account, isUnauthorizedByOcs: false },
    })
  rig.answers.origin = carrierWithoutPayer
  const { caller } = await place(rig)
  await caller.next('403 INVITE')
  expect(called.inbox).toEqual([])
  const denied = [await rig.record(), await rig.record()].map(({ denialCode }) => denialCode)
  expect(denied).toContain('unknown_caller')
})

test('a call that an application makes after its caller has left is paid by nobody, whoever From names', async () => {
  let goOn = (): void => undefined
  const waits = new Promise<void>((resolve) => (goOn = resolve))
  const failures: unknown[] = []
  const rig = await startApplicationRig(
    onInvite(async (request, response) => {
      await waits
      await request.srf
        .createB2BUA(request, response, 'sip:15550000@192.0.2.9', {})
        .catch((error: unknown) => failures.push(error))
    }),
  )
  rig.answers.origin = carrierWithoutPayer
  const { caller, leg } = await place(rig)
  await rig.until(() => rig.calls.list().length === 1)
  await rig.settle()
  caller.request('CANCEL', leg)
  await caller.next('487 INVITE')
  await rig.record()
  const asked = rig.asked.length
  goOn()
  expect(await rig.record()).toMatchObject({
    calledNumber: '15550000',
    denialCode: 'unknown_caller',
  })
  expect(rig.asked.slice(asked)).toEqual([])
})

const carrierWithoutPayer = {
  kind: 'carrier',
  carrierId: 5,
  gatewayId: 1,
  name: 'Alpha',
  customerId: null,
  payer: 'customer',
  tenantId: null,
  inboundSetId: null,
} as const

test('an application that forwards a call sends it by the product alone', async () => {
  const rig = await startApplicationRig(
    onInvite((request) => {
      request.srf.proxyRequest(request, 'sip:1777@192.0.2.9:5090')
    }),
  )
  const node = await rig.node()
  const placed = await place(rig)
  const invite = await node.next('INVITE')
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  await answered(placed)
  await node.next('ACK')
  placed.caller.request('BYE', placed.leg)
  node.reply(await node.next('BYE'), 200)
  await placed.caller.next('200 BYE')
  const records = [await rig.record(), await rig.record()]
  expect(records.map(({ calledNumber }) => calledNumber).toSorted()).toEqual(['1555', '1777'])
})

test('a request from the place of the application without its secret is refused', async () => {
  const rig = await startApplicationRig(onInvite((_request, response) => response.send(486)))
  const caller = await rig.caller()
  const { port } = caller
  rig.applications.started({ run: 2, protocol: 'udp', host: '127.0.0.1', port, secret: 'other' })
  const faked = ['X-Tollgate-Application: a guess']
  caller.request('INVITE', caller.leg(rig.uri('1555')), { headers: faked })
  await caller.next('403 INVITE')
})

test('a call of an application shows no number that who pays does not own', async () => {
  const { identities } = new RiggedRules()
  const { own, strangers } = numbersOf
  const rig = await startApplicationRig(
    onInvite(async (request, response) => {
      const uri = `sip:1555@127.0.0.1:${rig.server.listeners[0]?.port ?? 0}`
      const headers = {
        From: `"Bank" <sip:${strangers}@bank.example>`,
        'P-Asserted-Identity': `<sip:${strangers}@bank.example>`,
        Diversion: `<sip:${strangers}@bank.example>`,
      }
      await request.srf.createUAC(uri, { headers, localSdp: sdp('offer') }).catch(() => undefined)
      response.send(486)
    }),
    { identities },
  )
  const carrier = await rig.caller()
  const to = { uri: `sip:127.0.0.1:${carrier.port};transport=udp`, host: '127.0.0.1' }
  const callerId = { mode: 'policy', value: null } as const
  rig.answers.outbound = {
    kind: 'gateways',
    isEmergency: false,
    gateways: [gateway({ ...to, callerId })],
  }
  rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
  const { caller } = await place(rig)
  const invite = await carrier.next('INVITE')
  carrier.reply(invite, 486, { tag: 'c' })
  await caller.next('486 INVITE')
  expect(invite.get('From')).toContain(own)
  expect(invite.text.split('\r\n\r\n')[0]).not.toContain(strangers.slice(1))
})
