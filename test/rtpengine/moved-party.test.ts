/**
 * A party answers with another place for its media, and the other one is not told of the relay's new port (a phone of
 * click-to-call does so): it goes on to send to the old one.
 */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../support/free-port.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import { sdp } from '../support/sip-peer.ts'
import { eventually } from '../support/waiting.ts'

/** What sends and receives RTP at a port of its own. */
class RtpPeer {
  readonly port: number
  received = 0
  readonly #socket: Socket
  #sequence = 0

  private constructor(port: number, socket: Socket) {
    this.port = port
    this.#socket = socket
    socket.on('message', () => (this.received += 1))
  }

  static async open(): Promise<RtpPeer> {
    const port = await freePort()
    const socket = createSocket('udp4').bind(port, '127.0.0.1')
    await once(socket, 'listening')
    onTestFinished(() => void socket.close())
    return new RtpPeer(port, socket)
  }

  /** 20 ms of PCMU. */
  send(port: number): void {
    const packet = Buffer.alloc(172, 0xff)
    this.#sequence += 1
    packet.writeUInt16BE(0x80_00, 0)
    packet.writeUInt16BE(this.#sequence, 2)
    packet.writeUInt32BE(this.#sequence * 160, 4)
    packet.writeUInt32BE(this.port, 8)
    this.#socket.send(packet, port, '127.0.0.1')
  }
}

test('the old port of the relay leads to the new place', async () => {
  const relay = await RtpEngine.start()
  onTestFinished(() => relay.stop())
  const [before, after, other] = [await RtpPeer.open(), await RtpPeer.open(), await RtpPeer.open()]
  const ask = async (command: string, from: string, to: string, port: number): Promise<number> => {
    const tags = { 'call-id': 'call', 'from-tag': from, 'to-tag': to }
    const answer = await relay.request({ command, ...tags, sdp: sdp('party', port) })
    const told = answer.kind === 'ok' ? answer.values['sdp'] : undefined
    return Number(/m=audio (\d+)/.exec(typeof told === 'string' ? told : '')?.[1])
  }
  const talk = (party: RtpPeer, toParty: number, toOther: number): Promise<void> =>
    eventually(() => {
      party.send(toParty)
      other.send(toOther)
      if (party.received < 5 || other.received < 5) throw new Error('no media')
    })

  const toldOther = await ask('offer', 'party', 'other', before.port)
  const told = await ask('answer', 'party', 'other', other.port)
  await talk(before, told, toldOther)
  const toldAgain = await ask('offer', 'other', 'party', other.port)
  const notTold = await ask('answer', 'other', 'party', after.port)
  expect(notTold).not.toBe(toldOther)
  other.received = 0
  await talk(after, toldAgain, toldOther)
})
