/**
 * Descriptions beside other parts, and such as the world writes them: the relay takes part in them
 * as in plain ones.
 */
import { expect, test } from 'vitest'
import { startCallRig, talk } from '../../../support/call-rig.ts'
import { placeIn, startMediaRig } from '../../../support/media-rig.ts'
import { sdp, type Content } from '../../../support/sip-peer.ts'
import { acknowledge, carrierOf, dial, extensionRecord, hangUp } from '../../call/steps.ts'

const signal = [
  'Content-Disposition: signal; handling=optional',
  'Content-Type: application/isup; version=itu-t92+; base=itu-t92+',
  '',
  '\u0001\u0000`\u0000 not text',
]
const location = ['Content-Type: application/pidf+xml', 'Content-ID: <a@b>', '', '<presence/>']
const session = (text: string): readonly string[] => [
  'Content-Disposition: session; handling=required',
  'Content-Type: application/sdp',
  '',
  text,
]

const joined = (...parts: readonly (readonly string[])[]): string =>
  [...parts.flatMap((part) => ['--delim', ...part]), '--delim--', ''].join('\r\n')

const several = (body: string, more: readonly string[] = []): Content => ({
  headers: ['MIME-Version: 1.0', ...more],
  contentType: 'multipart/mixed;boundary="delim"',
  body,
})

const place = '10.99.0.1:30002'

test.each([
  ['beside a signal', joined(session(sdp('offer')), signal)],
  ['after a signal', joined(signal, session(sdp('offer')))],
  ['after a location', joined(location, session(sdp('offer')))],
  ['after a preamble', `Some words.\r\n${joined(session(sdp('offer')), signal)}and an epilogue`],
  ['by bare line feeds', joined(session(sdp('offer')), signal).replaceAll('\r\n', '\n')],
])('an offer %s goes through the relay, and the rest passes as it came', async (_, body) => {
  const rig = await startMediaRig()
  const { caller, node, leg, invite } = await dial(rig, several(body))
  expect(placeIn(invite.body)).toBe(place)
  expect(invite.get('Content-Type')).toBe('multipart/mixed;boundary="delim"')
  const sent = (text: string): readonly string[] =>
    text.split(/\r?\n/).filter((line) => !/^[oscm]=/.test(line))
  expect(sent(invite.body)).toEqual(sent(body))
  node.reply(invite, 200, { tag: 'b', body: sdp('answer', 5_000) })
  const ok = await acknowledge(caller, leg, node)
  expect([ok.get('Content-Type'), placeIn(ok.body)]).toEqual(['application/sdp', '10.99.0.1:30004'])
  await hangUp(caller, leg, node)
  await rig.idle()
  expect(rig.relay.commands).toEqual(['offer', 'answer', 'delete'])
})

test.each([
  ['a call that may be recorded', { policy: 'bypass', isRecorded: true } as const, sdp('offer')],
  [
    'a caller behind NAT',
    { policy: 'bypass' } as const,
    sdp('offer').replaceAll('127.0.0.1', '10.0.0.7'),
  ],
])('the relay has %s', async (_, options, offer) => {
  const rig = await startMediaRig(options)
  const { node, invite, caller } = await dial(rig, several(joined(session(offer), signal)))
  expect(placeIn(invite.body)).toBe(place)
  node.reply(invite, 486, { tag: 'b' })
  await caller.next('486 INVITE')
  await rig.idle()
})

test('answers with other parts pass as offers do: 183, 200, re-INVITE, UPDATE, ACK', async () => {
  const rig = await startMediaRig()
  const { caller, node, leg, invite } = await dial(rig)
  const answer = joined(signal, session(sdp('answer', 5_000)))
  node.reply(invite, 183, { tag: 'b', ...several(answer) })
  const early = await caller.next('183 INVITE')
  expect([placeIn(early.body), early.body.includes('not text')]).toEqual(['10.99.0.1:30004', true])
  node.reply(invite, 200, { tag: 'b', ...several(answer) })
  const ok = await acknowledge(caller, leg, node)
  expect(placeIn(ok.body)).toBe('10.99.0.1:30004')
  expect(ok.get('Content-Type')).toBe('multipart/mixed;boundary="delim"')

  for (const method of ['INVITE', 'UPDATE']) {
    const moved = method === 'INVITE' ? 4_444 : 4_446
    caller.request(method, leg, several(joined(session(sdp('moved', moved)), signal)))
    const again = await node.next(method)
    expect(placeIn(again.body)).toMatch(/^10\.99\.0\.1:/)
    expect(again.body).toContain('not text')
    node.reply(again, 200, several(answer))
    expect(placeIn((await caller.next(`200 ${method}`)).body)).toBe('10.99.0.1:30004')
    if (method === 'INVITE') {
      caller.request('ACK', leg)
      await node.next('ACK')
    }
  }

  caller.request('INVITE', leg)
  node.reply(await node.next('INVITE'), 200, several(joined(session(sdp('theirs', 5_002)))))
  expect(placeIn((await caller.next('200 INVITE')).body)).toMatch(/^10\.99\.0\.1:/)
  caller.request('ACK', leg, several(joined(session(sdp('ours', 4_448)))))
  expect(placeIn((await node.next('ACK')).body)).toMatch(/^10\.99\.0\.1:/)
  await hangUp(caller, leg, node)
  await rig.idle()
  expect(rig.relay.complaints).toEqual([])
})

test('the node calls: its offer with other parts goes through the relay, too', async () => {
  const rig = await startMediaRig()
  const { node, nodeLeg, caller } = await talk(rig)
  node.request('INVITE', nodeLeg, several(joined(session(sdp('moved', 5_444)), signal)))
  const again = await caller.next('INVITE')
  expect(placeIn(again.body)).toMatch(/^10\.99\.0\.1:/)
  expect(again.body).toContain('not text')
  caller.reply(again, 200, { body: sdp('answer') })
  await node.next('200 INVITE')
  node.request('ACK', nodeLeg)
  await caller.next('ACK')
})

test('hold is seen in a description with other parts', async () => {
  const rig = await startMediaRig({ policy: 'bypass' })
  const { caller, leg, node } = await talk(rig)
  const held = sdp('offer').replace('sendrecv', 'sendonly')
  caller.request('INVITE', leg, several(joined(location, session(held))))
  node.reply(await node.next('INVITE'), 200, { body: sdp('answer') })
  await caller.next('200 INVITE')
  expect(rig.calls.list()).toMatchObject([{ state: 'HELD' }])
  caller.request('ACK', leg)
})

test('a signal alone in a 183 is no early media, and passes', async () => {
  const rig = await startMediaRig()
  const { caller, node, invite } = await dial(rig)
  node.reply(invite, 183, { tag: 'b', contentType: 'application/isup', body: 'signal' })
  const early = await caller.next('183 INVITE')
  expect([early.get('Content-Type'), early.body]).toEqual(['application/isup', 'signal'])
  expect(rig.calls.list()).toMatchObject([{ state: 'DIALING' }])
  node.reply(invite, 486, { tag: 'b' })
  await caller.next('486 INVITE')
})

test('the body of a refusal is not told', async () => {
  const rig = await startMediaRig()
  const { caller, node, invite } = await dial(rig)
  node.reply(invite, 486, { tag: 'b', contentType: 'text/plain', body: 'pbx-7.inner is busy' })
  expect((await caller.next('486 INVITE')).text).not.toMatch(/inner|text\/plain/)
})

const insists = ['Content-Type: application/isup', 'Content-Disposition: signal;handling=required']
const unknown = several(joined(session(sdp('offer')), [...insists, '', 'x']))

test.each(['bypass', 'anchor'] as const)(
  'a part that must be understood and is not gets 415 with Accept, and the record says why (%s)',
  async (policy) => {
    const rig = await startMediaRig({ policy })
    const caller = await rig.caller()
    await rig.node()
    const leg = caller.leg(rig.uri('1555'))
    caller.request('INVITE', leg, unknown)
    const refusal = await caller.next('415 INVITE')
    expect(refusal.get('Accept')).toBe('application/sdp, multipart/mixed')
    expect(refusal.get('Warning')).toContain('unsupported_body')
    expect(await rig.record()).toMatchObject({ sipCode: 415, denialCode: 'unsupported_body' })
    await rig.idle()
  },
)

test('inside a call, too, and the call goes on', async () => {
  const rig = await startMediaRig()
  const { caller, node, leg } = await talk(rig)
  for (const method of ['INVITE', 'UPDATE']) {
    caller.request(method, leg, unknown)
    expect((await caller.next(`415 ${method}`)).get('Accept')).toContain('application/sdp')
    if (method === 'INVITE') caller.request('ACK', leg)
  }
  await hangUp(caller, leg, node)
  await rig.idle()
})

test('nobody in need is refused because of a part: it passes, and the description is relayed', async () => {
  const rig = await startMediaRig()
  const node = await carrierOf(rig, {}, true)
  rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
  const caller = await rig.caller()
  const leg = caller.leg(rig.uri('112'))
  caller.request('INVITE', leg, unknown)
  const invite = await node.next('INVITE')
  expect([placeIn(invite.body), invite.body.includes(insists[1] ?? '')]).toEqual([place, true])
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg, node)
  await hangUp(caller, leg, node)
  await rig.idle()
})

// RFC 4566 §5: what is not quite a description is one.

const odd: readonly (readonly [string, string])[] = [
  ['a blank after the version', sdp('offer').replace('v=0', 'v=0 ')],
  ['empty lines first', `\r\n\r\n${sdp('offer')}`],
  ['bare line feeds', sdp('offer').replaceAll('\r\n', '\n')],
  ['blanks around the sign', sdp('offer').replace('v=0', 'v = 0')],
  ['blanks at the ends of lines', sdp('offer').replaceAll('\r\n', ' \r\n')],
  ['two blanks together', sdp('offer').replace('m=audio ', 'm=audio  ')],
  ['small letters', sdp('offer').replace('c=IN IP4', 'c=in ip4')],
  ['empty lines at the end', `${sdp('offer')}\r\n\r\n`],
  ['a line that is none', `${sdp('offer')}nothing\r\n`],
  ['a zero byte at the end', `${sdp('offer')}\0`],
]

test.each(odd)('an offer with %s goes through the relay', async (_, body) => {
  const rig = await startMediaRig()
  const { caller, node, leg, invite } = await dial(rig, { body })
  expect(placeIn(invite.body)).toBe(place)
  expect(invite.body).toMatch(/^v=0\r?\n/)
  node.reply(invite, 200, { tag: 'b', body: body.replace('offer', 'answer') })
  expect(placeIn((await acknowledge(caller, leg, node)).body)).toMatch(/^10\.99\.0\.1:/)
  await hangUp(caller, leg, node)
  await rig.idle()
})

test.each(['anchor', 'bypass'] as const)(
  'a name instead of an address passes where no relay has to read it, and is refused with 488 elsewhere (%s)',
  async (policy) => {
    const rig = await startMediaRig({ policy })
    const [caller, node] = [await rig.caller(), await rig.node()]
    const body = sdp('offer').replace(/c=.*/, 'c=IN IP4 phone.example')
    caller.request('INVITE', caller.leg(rig.uri('1555')), { body })
    if (policy === 'bypass') {
      const invite = await node.next('INVITE')
      expect(invite.body).toBe(body)
      return node.reply(invite, 486, { tag: 'b' })
    }
    expect((await caller.next('488 INVITE')).get('Warning')).toContain('unreadable_description')
    expect(await rig.record()).toMatchObject({ denialCode: 'unreadable_description' })
    await rig.idle()
    expect(rig.relay.commands).toEqual(['offer', 'delete'])
    return expect(rig.other.commands).toEqual([])
  },
)

test('without relays all of that passes as it came', async () => {
  for (const body of [joined(session(sdp('offer')), signal), joined(signal, location)]) {
    const rig = await startCallRig()
    const { caller, node, invite } = await dial(rig, several(body))
    expect(invite.body).toBe(body)
    expect(invite.get('Content-Type')).toBe('multipart/mixed;boundary="delim"')
    expect(invite.get('MIME-Version')).toBe('1.0')
    node.reply(invite, 486, { tag: 'b' })
    await caller.next('486 INVITE')
    await rig.stop()
  }
})

// RFC 6157: media flows between parties that have an IP version in common.

const six = (text: string): string => text.replaceAll(/IN IP4 \S+/g, 'IN IP6 2001:db8::9')
const dual = (text: string): string =>
  `${text}a=candidate:1 1 UDP 1 2001:db8::9 4000 typ host\r\na=candidate:2 1 UDP 1 127.0.0.1 4000 typ host\r\n`
/** RFC 4091. */
const anat = (text: string): string =>
  `${text}m=audio 4002 RTP/AVP 0\r\nc=IN IP4 127.0.0.1\r\na=mid:2\r\n`

test.each([
  ['IPv6 alone', six(sdp('offer')), 'IP4'],
  ['IPv6 of its stream', sdp('offer').replace('a=sendrecv', 'c=IN IP6 2001:db8::9'), 'IP4'],
])('%s to a node with IPv4: a relay stands between', async (_, body, family) => {
  const rig = await startMediaRig({ policy: 'bypass' })
  const { caller, node, leg, invite } = await dial(rig, { body })
  expect(placeIn(invite.body)).toBe(place)
  expect(rig.relay.requests[0]).toMatchObject({ command: 'offer', 'address family': family })
  node.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg, node)
  await hangUp(caller, leg, node)
  await rig.idle()
})

test.each([
  ['IPv6 with candidates of both', dual(six(sdp('offer')))],
  ['streams of both', anat(six(sdp('offer')))],
  ['an alternative (RFC 6947)', `${six(sdp('offer'))}a=altc:1 IP4 127.0.0.1 4000\r\n`],
  ['nowhere yet', six(sdp('offer')).replace(/c=.*/, 'c=IN IP6 ::')],
  ['a name that leads nowhere', sdp('offer').replace(/c=.*/, 'c=IN IP6 discard.invalid')],
  ['a refused stream', `${sdp('offer')}m=video 0 RTP/AVP 96\r\nc=IN IP6 2001:db8::9\r\n`],
])('%s needs none', async (_, body) => {
  const rig = await startMediaRig({ policy: 'bypass' })
  const { node, caller, invite } = await dial(rig, { body })
  expect(invite.body).toBe(body)
  node.reply(invite, 486, { tag: 'b' })
  await caller.next('486 INVITE')
  expect(rig.relay.commands).toEqual([])
})

test.each(['bypass', 'prefer'] as const)(
  'without a relay in service such a call gets 488, and the record says why (%s)',
  async (policy) => {
    const rig = await startMediaRig({ policy })
    for (const relay of rig.relays) relay.isAlive = false
    const caller = await rig.caller()
    await rig.node()
    caller.request('INVITE', caller.leg(rig.uri('1555')), { body: six(sdp('offer')) })
    expect((await caller.next('488 INVITE')).get('Warning')).toContain('no_common_ip_version')
    expect(await rig.record()).toMatchObject({ sipCode: 488, denialCode: 'no_common_ip_version' })
    await rig.idle()
  },
)

test('where there are no relays at all, too, but not in an emergency', async () => {
  const rig = await startCallRig()
  const caller = await rig.caller()
  const node = await rig.node()
  caller.request('INVITE', caller.leg(rig.uri('1555')), { body: six(sdp('offer')) })
  await caller.next('488 INVITE')
  expect(await rig.record()).toMatchObject({ sipCode: 488, denialCode: 'no_common_ip_version' })
  caller.request('INVITE', caller.leg(rig.uri('1555')), { body: dual(six(sdp('offer'))) })
  node.reply(await node.next('INVITE'), 486, { tag: 'b' })
  await caller.next('486 INVITE')
  const carrier = await carrierOf(rig, {}, true)
  rig.answers.caller = { kind: 'extension', extension: extensionRecord('101') }
  caller.request('INVITE', caller.leg(rig.uri('112')), { body: six(sdp('offer')) })
  carrier.reply(await carrier.next('INVITE'), 486, { tag: 'b' })
  await caller.next('486 INVITE')
  await rig.stop()
})

test('a party that moves to another IP version gets the relay with its re-INVITE', async () => {
  const rig = await startMediaRig({ policy: 'bypass' })
  const { caller, node, leg } = await talk(rig)
  caller.request('INVITE', leg, { body: six(sdp('moved')) })
  const again = await node.next('INVITE')
  expect(placeIn(again.body)).toBe(place)
  node.reply(again, 200, { body: sdp('answer') })
  expect((await caller.next('200 INVITE')).body).toContain('c=IN IP4 10.99.0.1')
  caller.request('ACK', leg)
  await node.next('ACK')
  await hangUp(caller, leg, node)
  await rig.idle()
})

test('an answer in another IP version than the offer does not pass', async () => {
  const rig = await startMediaRig({ policy: 'bypass' })
  const { caller, node, leg, invite } = await dial(rig)
  node.reply(invite, 200, { tag: 'b', body: six(sdp('answer')) })
  await node.next('ACK')
  await caller.next('488 INVITE')
  caller.request('ACK', leg)
  node.reply(await node.next('BYE'), 200)
  expect(await rig.record()).toMatchObject({ sipCode: 488, denialCode: 'no_common_ip_version' })
  await rig.idle()
})
