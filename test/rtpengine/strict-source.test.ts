/**
 * The packets that a real rtpengine forwards: a party's, also from behind NAT, and no stranger's.
 */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { readDescription } from '../../engine/media/description.ts'
import { answerFlags, offerFlags } from '../../engine/media/gate/offers.ts'
import type { NgRequest } from '../../engine/media/relay/relays.ts'
import { baresipOffer, party } from '../support/media-party.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import { eventually } from '../support/waiting.ts'

let relay: RtpEngine
const sockets: Socket[] = []

beforeAll(async () => {
  relay = await RtpEngine.start()
})
afterAll(async () => {
  for (const socket of sockets) socket.close()
  await relay.stop()
})

async function opened(): Promise<Socket> {
  const socket = createSocket('udp4')
  sockets.push(socket)
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return socket
}

/** A packet of PCMA that can be told by its SSRC. */
function packet(ssrc: number, sequence: number): Buffer {
  const bytes = Buffer.alloc(12 + 160, 0xd5)
  bytes.writeUInt16BE(0x80_08, 0)
  bytes.writeUInt16BE(sequence, 2)
  bytes.writeUInt32BE(sequence * 160, 4)
  bytes.writeUInt32BE(ssrc, 8)
  return bytes
}

async function ask(request: NgRequest): Promise<number> {
  const answer = await relay.request(request)
  const sdp = answer.kind === 'ok' ? answer.values['sdp'] : undefined
  if (typeof sdp !== 'string') throw new Error(JSON.stringify(answer))
  return Number(/^m=audio (\d+)/m.exec(sdp)?.[1])
}

test('a phone behind NAT is heard, and a stranger is not', async () => {
  const [phone, callee, stranger] = [await opened(), await opened(), await opened()]
  const heard = new Map<number, number>()
  callee.on('message', (bytes: Buffer) => {
    const ssrc = bytes.length < 12 ? 0 : bytes.readUInt32BE(8)
    heard.set(ssrc, (heard.get(ssrc) ?? 0) + 1)
  })
  const hidden = baresipOffer.replaceAll('127.0.0.1', '192.168.1.7')
  const answered = baresipOffer.replace('40000', String(callee.address().port))
  const offerer = party(hidden, { natAddress: '127.0.0.1' })
  const answerer = { ...party(), description: readDescription(answered) }
  const session = { 'call-id': 'strict', 'from-tag': 'a', 'to-tag': 'b' }
  await ask({ ...offerFlags(offerer, party()), command: 'offer', ...session, sdp: hidden })
  const flags = answerFlags(offerer, answerer)
  const port = await ask({ ...flags, command: 'answer', ...session, sdp: answered })

  let sequence = 0
  const sending: (readonly [Socket, number])[] = [[phone, 1]]
  const pace = setInterval(() => {
    sequence += 1
    for (const [socket, ssrc] of sending) socket.send(packet(ssrc, sequence), port, '127.0.0.1')
  }, 20)
  onTestFinished(() => clearInterval(pace))
  // The relay learns for three seconds where the packets of a party come from.
  await eventually(() => expect(heard.get(1) ?? 0).toBeGreaterThan(200))
  const before = heard.get(1) ?? 0
  sending.push([stranger, 2])
  await eventually(() => expect(heard.get(1) ?? 0).toBeGreaterThan(before + 25))
  expect(heard.get(2) ?? 0).toBe(0)
})
