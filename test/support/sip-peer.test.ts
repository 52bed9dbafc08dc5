import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { SipPeer } from './sip-peer.ts'
import { eventually } from './waiting.ts'

const request = (number: number): string =>
  [
    'OPTIONS sip:peer@127.0.0.1 SIP/2.0',
    `Via: SIP/2.0/UDP 127.0.0.1;branch=z9hG4bK-${number}`,
    'From: <sip:server@127.0.0.1>;tag=s',
    'To: <sip:peer@127.0.0.1>',
    'Call-ID: repeated',
    `CSeq: ${number} OPTIONS`,
    '',
    '',
  ].join('\r\n')

async function patientPeer() {
  const server = createSocket('udp4').bind(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address()
  const place = { address: '127.0.0.1', advertisedHost: '127.0.0.1', advertisedPort: port }
  const peer = await SipPeer.openPatient({ protocol: 'udp', port, ...place })
  onTestFinished(() => peer.close())
  const send = (number: number) => server.send(request(number), peer.port, '127.0.0.1')
  return { server, peer, send }
}

test('a patient peer hears once of what comes twice, and gives the same answer again', async () => {
  const { server, peer, send } = await patientPeer()
  // The second copy comes before the answer, the third one after it.
  for (const number of [1, 1, 2]) send(number)
  const first = await peer.next('OPTIONS')
  const second = await peer.next('OPTIONS')
  expect([first.get('CSeq'), second.get('CSeq')]).toEqual(['1 OPTIONS', '2 OPTIONS'])
  const answered = once(server, 'message')
  peer.reply(first, 200, { tag: 'p' })
  const [answer] = await answered
  const again = once(server, 'message')
  send(1)
  expect(String((await again)[0])).toBe(String(answer))
  expect(peer.inbox).toEqual([])
})

test('a method that is always answered is, also what came before that was said, and the test hears of none', async () => {
  const { server, peer, send } = await patientPeer()
  send(1)
  await eventually(() => expect(peer.inbox).toHaveLength(1))
  for (const number of [1, 2]) {
    const answered = once(server, 'message')
    if (number === 1) peer.always('OPTIONS', 200, { tag: 'p' })
    else send(number)
    const [answer] = await answered
    expect(String(answer)).toMatch(new RegExp(`^SIP/2.0 200 [^]*CSeq: ${number} OPTIONS`))
  }
  expect(peer.inbox).toEqual([])
})
