/**
 * Each way in which a call begins asks each question: what may not be called in one way may not be
 * in another.
 */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ways, type WayToCall } from '../../../engine/call/inbound/admission.ts'
import type { OutboundDecision } from '../../../engine/routing/routing.ts'
import { startCallRig, type CallRig } from '../../support/call-rig.ts'
import { gateway } from '../../support/gateway.ts'
import { sdp, type SipPeer } from '../../support/sip-peer.ts'
import { establish, extension101 } from '../../support/transfer-rig.ts'
import { addExtensions, denied, extensionRecord, home, originateRequest, phoneOf } from './steps.ts'

let rig: CallRig
let carrier: SipPeer

beforeEach(async () => {
  rig = await startCallRig()
  addExtensions(rig, extensionRecord('101'), extensionRecord('102'))
  carrier = await rig.caller()
})
afterEach(() => rig.stop())

const outside = (isEmergency = false): OutboundDecision => {
  const uri = `sip:127.0.0.1:${carrier.port};transport=udp`
  const [host, port, id] = ['127.0.0.1', carrier.port, 9]
  return {
    kind: 'gateways',
    gateways: [gateway({ carrierId: id, gatewayId: id, host, port, uri })],
    isEmergency,
  }
}

/**
 * Begins a call to `number` after `ask`; resolves when it is under way, or with what the API was
 * told.
 */
type Begin = (number: string, ask: () => void) => Promise<object | undefined>

async function ring(
  phone: SipPeer,
  result: Promise<{ readonly kind: string }>,
): Promise<object | undefined> {
  const told = await result
  if (told.kind !== 'originating') return told
  phone.reply(await phone.next('INVITE'), 200, { tag: 'a', body: sdp('offer') })
  return undefined
}

const begins: Readonly<Record<WayToCall, Begin>> = {
  invite: async (number, ask) => {
    const { answers } = rig
    answers.caller = { kind: 'extension', extension: extensionRecord('101') }
    const phone = await rig.caller()
    ask()
    phone.request('INVITE', phone.leg(rig.uri(number)), { body: sdp('offer') })
    return undefined
  },
  'click-to-call': async (number, ask) => {
    const phone = await phoneOf(rig, '101')
    ask()
    return ring(phone, rig.control.originate({ ...originateRequest, destination: number }))
  },
  'carrier test': async (number, ask) => {
    const phone = await phoneOf(rig, '101')
    ask()
    const tested = { destination: number, testedCarrierId: 9 }
    return ring(phone, rig.control.originate({ ...originateRequest, ...tested }))
  },
  'test call': async (number, ask) => {
    const own = await rig.caller()
    ask()
    const from = { kind: 'extension', domain: home, extension: '101' } as const
    const request = { from, destination: number, maxSeconds: 5 }
    return ring(own, rig.control.placeTestCall(request, `sip:test@127.0.0.1:${own.port}`))
  },
  transfer: async (number, ask) => {
    const { a, aLeg } = await establish(rig, extension101)
    ask()
    a.request('REFER', aLeg, { headers: [`Refer-To: <sip:${number}@${home}>`] })
    await a.next('202 REFER')
    return undefined
  },
  application: async (number, ask) => {
    const { answers, applications } = rig
    answers.caller = { kind: 'extension', extension: extensionRecord('101') }
    const peer = await rig.caller()
    const secret = 'of the worker'
    applications.started({ run: 1, protocol: 'udp', host: '127.0.0.1', port: peer.port, secret })
    ask()
    const headers = [`X-Tollgate-Application: ${secret}`]
    peer.request('INVITE', peer.leg(rig.uri(number)), { headers, body: sdp('offer') })
    return undefined
  },
  forward: async (number, ask) => {
    const phone = await phoneOf(rig, '102')
    rig.answers.inbound = { kind: 'extension', extension: '102', tenantId: 3, domain: home }
    const caller = await rig.caller()
    caller.request('INVITE', caller.leg(rig.uri('1777')), { body: sdp('offer') })
    const invite = await phone.next('INVITE')
    ask()
    phone.contact = `sip:${number}@${home}`
    phone.reply(invite, 302, { tag: 'f' })
    return undefined
  },
}

const all = Object.keys(ways) as readonly WayToCall[]

/** The answers, and the code for a program that asks for the call. */
const questions: Readonly<Record<string, readonly [() => void, string]>> = {
  'who pays': [
    () => void (rig.answers.authorize = denied('insufficient_funds')),
    'insufficient_funds',
  ],
  'whether a spend guard is reached': [
    () => void (rig.answers.authorize = denied('spend_guard')),
    'spend_guard',
  ],
  'whether the destination is blocked': [
    () => void (rig.answers.outbound = { kind: 'blocked', routeName: 'premium' }),
    'destination_blocked',
  ],
  'whether the carriers are full': [
    () => void (rig.answers.outbound = { kind: 'limited', limit: 'carrier 9' }),
    'carrier_limit',
  ],
  'whether calls are taken': [
    () => void (rig.answers.unserved = 'storage_unavailable'),
    'storage_unavailable',
  ],
}

/** The codes of the ended calls, and the one that the program was told. */
const codes = (told: object | undefined): readonly unknown[] => {
  const { kind, code = kind } = (told ?? {}) as { readonly kind?: string; readonly code?: string }
  return [code, ...rig.records.map(({ denialCode }) => denialCode)]
}

const cases = all.flatMap((way) =>
  Object.keys(questions).map((question) => [way, question] as const),
)

test.each(cases)('%s: it is asked %s', async (way, question) => {
  const [set, code] = questions[question] ?? [() => undefined, '']
  const told = await begins[way]('15550100', () => {
    rig.answers.outbound = outside()
    rig.answers.knowsNumber = true
    set()
  })
  await rig.settle()
  await rig.advance(100)
  expect(carrier.inbox).toEqual([])
  // A forward that is not taken up leaves the call as the phone has refused it.
  const isUnforwarded = way === 'forward' && code === 'storage_unavailable'
  if (!isUnforwarded && !isAskedLater(way, code)) expect(codes(told)).toContain(code)
})

/**
 * The route of a charged call of the API is chosen when its phone is picked up: its record has the
 * code when it ends.
 */
const isAskedLater = (way: WayToCall, code: string): boolean =>
  (way === 'click-to-call' || way === 'test call') &&
  (code === 'destination_blocked' || code === 'carrier_limit')

test.each(all)(
  '%s: an emergency number is dialled free, or refused, as the table says',
  async (way) => {
    const told = await begins[way]('112', () => {
      rig.answers.outbound = outside(true)
    })
    await rig.settle()
    if (ways[way].emergency === 'dialled') {
      expect((await carrier.next('INVITE')).uri).toContain('sip:')
      return
    }
    await rig.advance(100)
    expect(carrier.inbox).toEqual([])
    if (way !== 'forward' && way !== 'application')
      expect(told).toEqual({ kind: 'denied', code: 'emergency_number' })
    expect(rig.asked.filter(({ callee }) => callee === '112')).toEqual([])
  },
)

test('no person has dialled where an emergency number is refused', () => {
  const refusing = all.filter((way) => ways[way].emergency === 'refused')
  expect(refusing).toEqual(['forward', 'test call', 'application', 'carrier test'])
})
