/** What a party learns of the other one through a real relay: neither who it is, nor a codec that it did not offer. */
import { onTestFinished, test, expect } from 'vitest'
import { paying, seedFor } from '../sipp/call-case.ts'
import { RtpEngine } from '../support/rtpengine.ts'
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

/** A call through the relay whose caller takes one codec, and whose node answers with another; to the end. */
async function call(offered: string, answered: string) {
  const relay = await RtpEngine.start()
  onTestFinished(() => relay.stop())
  const { node, tollgate } = await startWithNode(seedFor, {
    RTPENGINE: relay.setting,
    MEDIA_POLICY: 'anchor',
  })
  const caller = await openPeer(tollgate)
  const leg = {
    ...caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`),
    from: `<sip:${paying}@127.0.0.1>;tag=caller`,
  }
  caller.request('INVITE', leg, { body: described('alice', offered) })
  const invite = await node.next('INVITE')
  node.reply(invite, 200, { tag: 'node', body: described('bob', answered) })
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
