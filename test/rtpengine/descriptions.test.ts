/**
 * Descriptions through a real relay: a party learns neither who the other one is, nor of a codec
 * that it did not offer; other parts of a body, odd lines and another IP version are no obstacle.
 */
import { onTestFinished, test, expect } from 'vitest'
import { paying, seedFor } from '../sipp/call-case.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import type { Content } from '../support/sip-peer.ts'
import { openPeer, startWithNode } from '../support/scripted-node.ts'

const rtpmaps: Readonly<Record<string, string>> = {
  '0': 'PCMU/8000',
  '8': 'PCMA/8000',
  '97': 'AMR-WB/16000',
}

/** A description of a party that says its name, and takes one codec. */
const described = (name: string, format: string): string =>
  [
    'v=0',
    `o=${name} 1 1 IN IP4 127.0.0.1`,
    `s=call of ${name}`,
    `i=about ${name}`,
    `e=${name}@example.com`,
    'c=IN IP4 127.0.0.1',
    't=0 0',
    `m=audio 4000 RTP/AVP ${format}`,
    `a=rtpmap:${format} ${rtpmaps[format]}`,
    '',
  ].join('\r\n')

const plain = (name: string, format: string): Content => ({ body: described(name, format) })

/**
 * A call through the relay whose caller takes one codec, and whose node answers with another; to
 * the end.
 */
const call = (offered: string, answered: string) =>
  callWith(plain('alice', offered), plain('bob', answered))

async function callWith(offer: Content, answering: Content, policy = 'anchor') {
  const relay = await RtpEngine.start({ words: ['--interface=::1'] })
  onTestFinished(() => relay.stop())
  const { node, tollgate } = await startWithNode(seedFor, {
    RTPENGINE: relay.setting,
    MEDIA_POLICY: policy,
  })
  const caller = await openPeer(tollgate)
  const leg = {
    ...caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`),
    from: `<sip:${paying}@127.0.0.1>;tag=caller`,
  }
  caller.request('INVITE', leg, offer)
  const invite = await node.next('INVITE')
  node.reply(invite, 200, { tag: 'node', ...answering })
  const answer = await caller.next(({ status }) => status >= 200)
  caller.learn(leg, answer)
  caller.request('ACK', leg)
  await node.next('ACK')
  if (answer.status === 200) caller.request('BYE', leg)
  node.reply(await node.next('BYE'), 200)
  await relay.idle()
  expect(tollgate.faults).toEqual([])
  return { invite, answer }
}

test('neither side is told the name of the other one; what the relay transcodes is in the codec that was offered', async () => {
  const { invite, answer } = await call('8', '0')
  expect(invite.body).not.toContain('alice')
  expect(answer.body).not.toContain('bob')
  for (const { body } of [invite, answer]) {
    expect(body).toMatch(/^o=- \d+ \d+ IN IP4 127\.0\.0\.1\r$/m)
    expect(body).toMatch(/^s=-\r$/m)
    expect(body).toMatch(/^m=audio \d+ RTP\/AVP 8\r$/m)
  }
})

test('an answer in a codec that was not offered, and that the relay cannot transcode, ends the call with 488', async () => {
  const { answer } = await call('97', '0')
  expect([answer.status, answer.body]).toEqual([488, ''])
})

test('a description beside other parts is relayed, and so is one with odd lines', async () => {
  const parts = [
    '--delim',
    'Content-Type: application/isup; version=itu-t92+',
    'Content-Disposition: signal; handling=optional',
    '',
    '\u0001\u0000`\u0000',
    '--delim',
    'Content-Type: application/sdp',
    '',
    described('alice', '8').replace('v=0', 'v=0 ').trimEnd(),
    '--delim--',
    '',
  ]
  const { invite, answer } = await callWith(
    { contentType: 'multipart/mixed;boundary="delim"', body: parts.join('\r\n') },
    { body: `\r\n${described('bob', '8').replace('audio ', 'audio  ')}nothing\r\n` },
  )
  expect(invite.get('Content-Type')).toBe('multipart/mixed;boundary="delim"')
  expect(invite.body.split('\r\n').slice(0, 7)).toEqual(parts.slice(0, 7))
  expect(invite.body).toMatch(/\r\n--delim--\r\n$/)
  for (const { body } of [invite, answer]) {
    expect(body).not.toMatch(/m=audio 4000|alice|bob/)
    expect(body).toMatch(/^m=audio \d+ RTP\/AVP 8\r$/m)
  }
})

test('an offer of IPv6 comes to a node with IPv4 as one of IPv4, and the answer goes back', async () => {
  const six = described('alice', '8').replaceAll('IP4 127.0.0.1', 'IP6 ::1')
  const { invite, answer } = await callWith({ body: six }, plain('bob', '8'), 'bypass')
  expect(invite.body).toMatch(/^c=IN IP4 127\.0\.0\.1\r$/m)
  expect(answer.body).toMatch(/^c=IN IP6 ::1\r$/m)
})
