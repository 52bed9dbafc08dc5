/** How calls go on after the answers of carriers that have rules for it. */
import { afterEach, expect, test } from 'vitest'
import { traceOf } from '../../../engine/call/trace/trace.ts'
import type { CarrierPrice } from '../../../engine/routing/outbound-routes.ts'
import type { CarrierRecord, OutboundRouteRecord } from '../../../engine/routing/routing-records.ts'
import type { RoutingDeps } from '../../../engine/routing/routing.ts'
import type { HuntingRules } from '../../../schema/contracts/hunting.ts'
import { usualHunting } from '../../../schema/rules/hunting.ts'
import { type CallRig, startCallRig } from '../../support/call-rig.ts'
import { type PeerMessage, sdp, type SipPeer } from '../../support/sip-peer.ts'
import {
  outboundRoute,
  perSecond,
  routingOver,
  sampleCarrier,
  sampleGateway,
} from '../routing/samples.ts'
import { acknowledge, hangUp } from './steps.ts'

let rig: CallRig

afterEach(() => rig.stop())

interface Setting {
  /** The rules of each carrier, in the order of their routes. */
  readonly rules: readonly (Partial<HuntingRules> | undefined)[]
  readonly carriers?: (index: number) => Partial<CarrierRecord>
  readonly routes?: readonly OutboundRouteRecord[]
  readonly prices?: Readonly<Record<string, number>>
  readonly routing?: Partial<RoutingDeps>
  readonly dialled?: string
  readonly isEmergency?: boolean
  readonly headers?: readonly string[]
  readonly options?: Parameters<typeof startCallRig>[0]
}

/** A call of a node that routing leads to these carriers. */
async function start(setting: Setting) {
  const { rules, carriers = () => ({}), dialled = '4930100', isEmergency = false } = setting
  rig = await startCallRig(setting.options)
  rig.answers.knowsNumber = true
  rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1, tenantId: 3 }
  const caller = await rig.caller()
  const gateways: SipPeer[] = []
  for (const _ of rules) gateways.push(await rig.caller())
  const records = rules.map((each, index) =>
    sampleCarrier(index + 1, {
      gateways: [sampleGateway(index + 1, { host: '127.0.0.1', port: gateways[index]?.port ?? 0 })],
      ...(each && { hunting: { ...usualHunting, ...each } }),
      ...carriers(index),
    }),
  )
  const outboundRoutes = [
    ...records.map(({ carrierId }) =>
      outboundRoute(carrierId, {
        carrierId,
        priority: carrierId,
        ...(isEmergency && { isEmergency, prefix: dialled }),
      }),
    ),
    ...(setting.routes ?? []),
  ]
  const { prices } = setting
  const carrierPrice = (_: number, number: string): CarrierPrice | undefined => {
    const minuteMicros = prices?.[number]
    return minuteMicros === undefined
      ? undefined
      : { tariff: perSecond(minuteMicros), isBlocked: false }
  }
  const { routing } = routingOver(
    { carriers: records, outboundRoutes },
    { carrierPrice, ...setting.routing },
  )
  rig.answers.outbound = routing.outboundCandidates(7, dialled, 3)
  rig.answers.redirected = (...asked) => routing.redirected(...asked)
  const leg = caller.leg(rig.uri(dialled))
  caller.request('INVITE', leg, { body: sdp('offer'), headers: setting.headers ?? [] })
  const [first, second, third] = gateways
  if (first === undefined) throw new Error('there is no carrier')
  const at = (index: number): SipPeer => {
    const peer = gateways[index]
    if (peer === undefined) throw new Error('there is no such carrier')
    return peer
  }
  return { caller, leg, at, first, second, third, gateways, invite: await first.next('INVITE') }
}

const refusal = (caller: SipPeer) => caller.next((message) => message.status >= 300)
const contactOf = (peer: SipPeer, user = '4930100', parameters = '') =>
  `<sip:${user}@127.0.0.1:${peer.port}>${parameters}`
const redirect = (
  peer: SipPeer,
  invite: PeerMessage,
  contacts: readonly string[],
  more: readonly string[] = [],
) =>
  peer.reply(invite, 302, {
    tag: 'r',
    headers: [...contacts.map((each) => `Contact: ${each}`), ...more],
  })
const noteOf = async () => {
  const { calls, messages } = rig
  const trace = await traceOf('uuid-1', { calls, messages, pause: () => Promise.resolve() })
  return trace?.entries.flatMap((each) =>
    each.kind === 'decision' && each.what === 'redirected' ? [each.detail] : [],
  )
}

test.each<[Partial<HuntingRules>, number, string | undefined, boolean]>([
  [{ nextOn: ['404'] }, 404, undefined, true],
  [{ nextOn: ['404'] }, 503, undefined, false],
  [{ nextOn: ['4xx'] }, 486, undefined, true],
  [{ nextOn: ['4xx'] }, 401, undefined, true],
  [{ nextOn: ['5xx'] }, 501, undefined, true],
  [{ nextOn: ['6xx'] }, 603, undefined, true],
  [{ nextOn: [] }, 503, undefined, false],
  [{ nextOn: ['3xx'] }, 302, undefined, true],
  [{ nextOn: ['Q.850;cause=34'] }, 480, 'Q.850;cause=34;text="No circuit"', true],
  [{ nextOn: ['Q.850;cause=34'] }, 480, 'SIP;cause=480, Q.850 ;cause=34', true],
  [{ nextOn: ['Q.850;cause=34'] }, 480, 'SIP;cause=34', false],
  [{ nextOn: ['Q.850;cause=34'] }, 503, undefined, false],
  [{ nextOn: ['Q.850;cause=34'] }, 480, 'Q.850;cause=340', false],
  [{ stopOn: ['503'] }, 503, undefined, false],
  [{ stopOn: ['503'] }, 502, undefined, true],
  [{ nextOn: ['5xx'], stopOn: ['Q.850;cause=17'] }, 503, 'Q.850;cause=17', false],
  [{ nextOn: ['5xx'], stopOn: ['Q.850;cause=17'] }, 503, 'Q.850;cause=16', true],
  [{ nextOn: ['5xx'], stopOn: ['Q.850;cause=17'] }, 503, 'Q.850;cause="', true],
  [{}, 503, undefined, true],
  [{}, 404, undefined, false],
])('%j: after %i (%s) the next one is tried: %s', async (rules, status, reason, movesOn) => {
  const { caller, first, at, invite } = await start({ rules: [rules, undefined] })
  const headers = reason === undefined ? [] : [`Reason: ${reason}`]
  first.reply(invite, status, { tag: 'a', headers })
  if (movesOn) at(1).reply(await at(1).next('INVITE'), 486, { tag: 'b' })
  await refusal(caller)
  const statuses = (await rig.record()).attempts.map((each) => each.status)
  expect(statuses).toEqual(movesOn ? [status, 486] : [status])
})

test('after early media no rule leads elsewhere', async () => {
  const { caller, first, invite } = await start({
    rules: [{ nextOn: ['5xx'], redirects: 'follow' }, undefined],
  })
  first.reply(invite, 183, { tag: 'a', body: sdp('early') })
  await caller.next(183)
  first.reply(invite, 503, { tag: 'a' })
  await caller.next(503)
  expect((await rig.record()).attempts).toHaveLength(1)
})

test.each([
  [1, [503]],
  [2, [503, 503]],
  [null, [503, 503, 503]],
])('with max_attempts %s a call has these attempts: %j', async (maxAttempts, expected) => {
  const { caller, gateways } = await start({
    rules: [undefined, undefined, undefined],
    carriers: (index) => (index === 0 ? { hunting: { ...usualHunting, maxAttempts } } : {}),
  }).then(async (call) => {
    call.first.reply(call.invite, 503, { tag: 'a' })
    return call
  })
  for (const peer of gateways.slice(1, expected.length))
    peer.reply(await peer.next('INVITE'), 503, { tag: 'b' })
  expect((await refusal(caller)).status).toBe(503)
  expect((await rig.record()).attempts.map(({ status }) => status)).toEqual(expected)
})

test('no gateway is tried later than max_seconds after the first', async () => {
  const { caller, first, at, invite } = await start({
    rules: [{ maxSeconds: 3 }, undefined, undefined],
    options: { withSipTimers: true },
  })
  first.reply(invite, 100)
  await rig.advance(1_000)
  first.reply(invite, 503, { tag: 'a' })
  const next = await at(1).next('INVITE')
  at(1).reply(next, 100)
  await rig.advance(2_100)
  at(1).reply(next, 503, { tag: 'b' })
  await caller.next('503 INVITE')
  expect((await rig.record()).attempts).toHaveLength(2)
  expect(at(2).inbox).toEqual([])
})

test('an emergency goes on whatever stops another call, to the last gateway', async () => {
  const { caller, first, at, invite } = await start({
    rules: [{ stopOn: ['503'], maxAttempts: 1, maxSeconds: 1 }, undefined],
    dialled: '112',
    isEmergency: true,
  })
  first.reply(invite, 503, { tag: 'a' })
  at(1).reply(await at(1).next('INVITE'), 486, { tag: 'b' })
  await caller.next('486 INVITE')
  expect((await rig.record()).attempts).toHaveLength(2)
})

test.each<[string, number, number | undefined, number, string | null, string, string]>([
  ['503', 503, undefined, 480, null, '480 Temporarily Unavailable', 'CONGESTION'],
  ['5xx', 502, undefined, 480, 'Try later', '480 Try later', 'FAILED'],
  ['Q.850;cause=21', 480, 21, 603, null, '603 Decline', 'NO ANSWER'],
  ['6xx', 600, undefined, 486, null, '486 Busy Here', 'BUSY'],
  ['486', 486, undefined, 600, null, '600 Busy Everywhere', 'BUSY'],
  ['407', 407, undefined, 503, null, '503 Service Unavailable', 'FAILED'],
  ['302', 302, undefined, 404, null, '404 Not Found', 'FAILED'],
])(
  '%s: %i with cause %s is shown as %i %s; the record has both',
  async (match, status, cause, shown, reason, line, disposition) => {
    const { caller, first, invite } = await start({
      rules: [
        {
          nextOn: [],
          answers: [
            { match: '599', status: 500, reason: null },
            { match, status: shown, reason },
          ],
        },
      ],
    })
    const headers = cause === undefined ? [] : [`Reason: Q.850;cause=${cause}`]
    first.reply(invite, status, { tag: 'a', headers })
    const answer = await refusal(caller)
    expect(answer.text.split('\r\n')[0]).toBe(`SIP/2.0 ${line}`)
    expect(answer.all('Reason')).toEqual([])
    expect(await rig.record()).toMatchObject({
      attempts: [{ status }],
      sipCode: shown,
      disposition,
      hangupBy: 'callee',
    })
  },
)

test('each carrier has its own answers shown, also when those after it are silent', async () => {
  const mapped = { answers: [{ match: '5xx', status: 486, reason: null }] }
  const { caller, first, invite } = await start({ rules: [mapped, {}] })
  first.reply(invite, 503, { tag: 'a' })
  await rig.advance(1_600)
  expect((await refusal(caller)).status).toBe(486)
})

test('a 200 and provisional answers are never shown as something else', async () => {
  const { caller, leg, first, invite } = await start({
    rules: [{ answers: [{ match: '4xx', status: 480, reason: null }] }],
  })
  first.reply(invite, 180, { tag: 'a' })
  await caller.next(180)
  first.reply(invite, 200, { tag: 'a', body: sdp('answer') })
  await acknowledge(caller, leg)
  await hangUp(caller, leg, first)
  expect((await rig.record()).disposition).toBe('ANSWERED')
})

test('a 3xx leads to gateways that are known, by q; then to the next carrier', async () => {
  const { caller, first, at, invite } = await start({
    rules: [{ redirects: 'follow' }, undefined, {}, undefined],
  })
  redirect(first, invite, [
    contactOf(at(2), '4930100', ';q=0.3'),
    contactOf(at(3), '4930100', ';q=0.9'),
  ])
  at(3).reply(await at(3).next('INVITE'), 503, { tag: 'b' })
  at(2).reply(await at(2).next('INVITE'), 503, { tag: 'c' })
  at(1).reply(await at(1).next('INVITE'), 486, { tag: 'd' })
  await caller.next('486 INVITE')
  expect((await rig.record()).attempts.map(({ status }) => status)).toEqual([302, 503, 503, 486])
})

test('without "follow" a 3xx is the last word, and shows nothing of its Contacts', async () => {
  const { caller, first, at, invite } = await start({ rules: [{}, undefined] })
  redirect(first, invite, [contactOf(at(1))])
  const answer = await refusal(caller)
  expect(answer.status).toBe(480)
  expect(answer.text).not.toContain(String(at(1).port))
})

test('parameters of the number and signatures of a redirect server are copied', async () => {
  const { caller, first, at, invite } = await start({
    rules: [{ redirects: 'follow' }, undefined],
    headers: ['Identity: of-the-caller', 'Date: yesterday'],
  })
  const user = '4930100;npdi;rn=+4930999;evil=1'
  redirect(
    first,
    invite,
    [`<sip:${user}@127.0.0.1:${at(1).port};user=phone?Subject=x>`],
    ['Identity: header.payload.signature;info=<https://sts.example/c.pem>;alg=ES256'],
  )
  const next = await at(1).next('INVITE')
  expect(next.uri).toBe(
    `sip:4930100;npdi;rn=+4930999@127.0.0.1:${at(1).port};transport=udp;user=phone`,
  )
  expect(next.all('Identity')).toEqual([
    'header.payload.signature;info=<https://sts.example/c.pem>;alg=ES256',
  ])
  expect(next.all('Date')).toEqual([])
  expect(next.all('Subject')).toEqual([])
  at(1).reply(next, 486, { tag: 'b' })
  await caller.next('486 INVITE')
})

test('without signatures in the 3xx those of the caller pass, and its rn does not', async () => {
  const { caller, first, at, invite } = await start({
    rules: [{ redirects: 'follow' }, undefined],
    headers: ['Identity: of-the-caller'],
  })
  redirect(first, invite, [contactOf(at(1))])
  const next = await at(1).next('INVITE')
  expect(next.all('Identity')).toEqual(['of-the-caller'])
  expect(next.uri).not.toContain('rn=')
  at(1).reply(next, 486, { tag: 'b' })
  await caller.next('486 INVITE')
})

test.each<[string, (at: (index: number) => SipPeer) => string, string]>([
  ['an unknown gateway', () => '<sip:4930100@127.0.0.1:9>', 'unknown_gateway'],
  [
    'another transport',
    (at) => `<sip:4930100@127.0.0.1:${at(1).port};transport=tcp>`,
    'unknown_gateway',
  ],
  ['TLS', (at) => `<sips:4930100@127.0.0.1:${at(1).port}>`, 'unknown_gateway'],
  [
    'another host behind maddr',
    (at) => `<sip:4930100@127.0.0.1:${at(1).port};maddr=192.0.2.9>`,
    'unknown_gateway',
  ],
  ['a name', (at) => `<sip:front-desk@127.0.0.1:${at(1).port}>`, 'no_number'],
  ['nobody', (at) => `<sip:127.0.0.1:${at(1).port}>`, 'no_number'],
  ['a tel URI', () => '<tel:+4930100>', 'unknown_gateway'],
  ['no URI', () => '<<>>;q=x', 'unknown_gateway'],
  ['the redirect server itself', (at) => contactOf(at(0)), 'loop'],
])('a 3xx to %s is passed over: the next carrier is tried', async (_, contact, why) => {
  const { caller, first, at, invite } = await start({ rules: [{ redirects: 'follow' }, undefined] })
  redirect(first, invite, [contact(at)])
  const next = await at(1).next('INVITE')
  expect(next.uri).toBe(`sip:4930100@127.0.0.1:${at(1).port};transport=udp`)
  at(1).reply(next, 486, { tag: 'b' })
  await caller.next('486 INVITE')
  // The first Contact is the peer's own, which has no number.
  const passedOver = ['no_number', why]
  expect(await noteOf()).toEqual([{ carrier: 'carrier 1', gateways: [], passedOver }])
})

test('a redirection to a carrier at its limit ends as a call to that carrier: 503', async () => {
  const { caller, first, at, invite } = await start({ rules: [{ redirects: 'follow' }, undefined] })
  rig.answers.admitsCarrier = false
  redirect(first, invite, [contactOf(at(1))])
  const refused = await refusal(caller)
  expect([refused.status, refused.get('retry-after')]).toEqual([503, expect.any(String)])
  const record = await rig.record()
  expect(record).toMatchObject({ sipCode: 503, denialCode: 'carrier_limit' })
  expect(record.attempts.map(({ status }) => status)).toEqual([302])
})

test('what a target of a redirection has said goes before the limit of the next carrier', async () => {
  const { caller, first, at, invite } = await start({
    rules: [{ redirects: 'follow' }, { nextOn: ['404'] }, undefined],
  })
  redirect(first, invite, [contactOf(at(1))])
  const next = await at(1).next('INVITE')
  rig.answers.admitsCarrier = false
  at(1).reply(next, 404, { tag: 'b' })
  expect((await refusal(caller)).status).toBe(404)
  expect(await rig.record()).toMatchObject({ sipCode: 404, denialCode: null })
})

test('a redirection that leads nowhere is stopped by stop_on', async () => {
  const { caller, first, at, invite } = await start({
    rules: [{ redirects: 'follow', stopOn: ['302'] }, undefined],
  })
  redirect(first, invite, ['<sip:4930100@127.0.0.1:9>'])
  expect((await refusal(caller)).status).toBe(480)
  expect(at(1).inbox).toEqual([])
})

test('redirect servers that name each other end, and so do fifty Contacts', async () => {
  const follow = { redirects: 'follow' } as const
  const { caller, first, at, invite } = await start({
    rules: [follow, follow, ...Array.from({ length: 10 }, () => undefined)],
  })
  const all = Array.from({ length: 50 }, (_, index) => contactOf(at(index % 12)))
  redirect(first, invite, [contactOf(at(1))])
  redirect(at(1), await at(1).next('INVITE'), [contactOf(first), ...all])
  for (const index of [2, 3, 4, 5]) {
    const status = index === 5 ? 486 : 503
    at(index).reply(await at(index).next('INVITE'), status, { tag: `b${index}` })
  }
  await refusal(caller)
  const statuses = (await rig.record()).attempts.map(({ status }) => status)
  expect(statuses).toEqual([302, 302, 503, 503, 503, 486])
  const [, note] = (await noteOf()) ?? []
  expect(note).toMatchObject({
    passedOver: expect.arrayContaining(['loop', 'too_many']) as unknown,
  })
  expect(note?.['gateways']).toHaveLength(4)
})

test('who hangs up while a call is redirected ends it, and nothing more is sent', async () => {
  const { caller, leg, first, at, invite } = await start({
    rules: [{ redirects: 'follow' }, undefined, undefined],
  })
  redirect(first, invite, [contactOf(at(2))])
  const next = await at(2).next('INVITE')
  at(2).reply(next, 100)
  await rig.seen(at(2))
  caller.request('CANCEL', leg)
  await caller.next('487 INVITE')
  await at(2).next('CANCEL')
  at(2).reply(next, 487, { tag: 'b' })
  const { disposition, attempts } = await rig.record()
  expect([disposition, attempts.length]).toEqual(['CANCELED', 2])
  await rig.idle()
  expect(at(1).inbox).toEqual([])
})

test('an answer of a gateway that was redirected to is paid by the number that it got', async () => {
  const { caller, leg, first, at, invite } = await start({
    rules: [{ redirects: 'follow' }, undefined],
    carriers: () => ({ ratePlanId: 5 }),
    prices: { '4930100': 20_000, '4930200': 10_000 },
  })
  redirect(first, invite, [contactOf(at(1), '4930200')])
  const next = await at(1).next('INVITE')
  expect(next.uri).toContain('sip:4930200@')
  const { current } = rig.calls.call('uuid-1')?.dialing ?? {}
  const bought = current?.kind === 'gateway' ? current.bought : undefined
  expect(bought).toMatchObject({ number: '4930200', ratePlanId: 5 })
  at(1).reply(next, 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg)
  await hangUp(caller, leg, at(1))
  // The payer pays for what was dialled.
  expect(await rig.record()).toMatchObject({ calledNumber: '4930100', ratePrefix: '1' })
  expect(rig.asked.map((each) => each.callee)).toEqual(['4930100'])
})

test.each<[string, string, Partial<Setting>, string]>([
  ['a premium number', '4990900', { prices: { '4930100': 20_000, '4990900': 900_000 } }, 'dearer'],
  ['a number without a price', '4990900', { prices: { '4930100': 20_000 } }, 'dearer'],
  [
    'a blocked number',
    '4990900',
    {
      prices: { '4930100': 20_000, '4990900': 10_000 },
      routes: [outboundRoute(90, { prefix: '49909', mode: 'block', carrierId: null })],
    },
    'number_blocked',
  ],
  [
    'an emergency number',
    '112',
    {
      prices: { '4930100': 20_000, '112': 0 },
      routes: [outboundRoute(90, { prefix: '112', isEmergency: true })],
    },
    'other_number',
  ],
  [
    'a blocked routing number',
    '4930100;rn=+4990900',
    {
      prices: { '4930100': 20_000 },
      routes: [outboundRoute(90, { prefix: '49909', mode: 'block', carrierId: null })],
    },
    'number_blocked',
  ],
  [
    'an emergency in rn',
    '4930100;rn=112;rn-context=example.com',
    {
      prices: { '4930100': 20_000 },
      routes: [outboundRoute(90, { prefix: '112', isEmergency: true })],
    },
    'number_blocked',
  ],
])('a 3xx to %s is passed over', async (_, user, setting, why) => {
  const { caller, first, at, invite } = await start({
    rules: [{ redirects: 'follow' }, undefined],
    carriers: () => ({ ratePlanId: 5 }),
    ...setting,
  })
  redirect(first, invite, [contactOf(at(1), user)])
  const next = await at(1).next('INVITE')
  expect(next.uri).toContain('sip:4930100@')
  at(1).reply(next, 486, { tag: 'b' })
  await caller.next('486 INVITE')
  expect((await noteOf())?.[0]).toMatchObject({ gateways: [], passedOver: ['no_number', why] })
})

test('a 3xx leads to no carrier that loss protection refuses', async () => {
  const taken: Readonly<Record<number, number>> = { 1: 10_000, 2: 90_000, 3: 60_000 }
  const protection = {
    leastMargin: { kind: 'amount', microsPerMinute: 0 },
    tenantId: null,
  } as const
  const { caller, first, at, invite } = await start({
    rules: [{ redirects: 'follow' }, undefined, undefined],
    carriers: (index) => ({ ratePlanId: index + 1 }),
    routes: [],
    routing: {
      carrierPrice: (planId) => ({ tariff: perSecond(taken[planId] ?? 0), isBlocked: false }),
      sales: {
        termsOf: () => [{ ...protection, protection: 'refuse' }],
        tariffOf: () => perSecond(70_000),
        isBlocked: () => false,
      },
    },
  })
  redirect(first, invite, [contactOf(at(1)), contactOf(at(2))])
  const next = await at(2).next('INVITE')
  at(2).reply(next, 486, { tag: 'b' })
  await caller.next('486 INVITE')
  expect((await noteOf())?.[0]).toMatchObject({
    gateways: [`sip:127.0.0.1:${at(2).port};transport=udp`],
    passedOver: ['no_number', 'below_margin'],
  })
  expect((await rig.record()).attempts.map(({ status }) => status)).toEqual([302, 486])
})

test('an emergency is redirected with its own number alone, and without parameters', async () => {
  const { caller, first, at, invite } = await start({
    rules: [{ redirects: 'follow' }, undefined, undefined],
    dialled: '112',
    isEmergency: true,
  })
  redirect(first, invite, [contactOf(at(1), '4930100'), contactOf(at(2), '112;rn=+4930999')])
  const next = await at(2).next('INVITE')
  expect(next.uri).toBe(`sip:112@127.0.0.1:${at(2).port};transport=udp`)
  at(2).reply(next, 486, { tag: 'b' })
  await caller.next('486 INVITE')
  expect((await noteOf())?.[0]).toMatchObject({ passedOver: ['no_number', 'other_number'] })
})
