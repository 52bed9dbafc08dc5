import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { MixerThread } from '../../../../engine/media/spy/mixer-thread.ts'
import { decoderOf, readRtp } from '../../../../engine/media/recording/audio/rtp.ts'
import { threadFile } from '../../../support/thread-file.ts'

const file = await threadFile(
  new URL('../../../../engine/media/spy/mixer-worker.ts', import.meta.url),
)

async function open(address = '127.0.0.1', port = 0): Promise<Socket> {
  const socket = createSocket('udp4')
  socket.bind(port, address)
  await once(socket, 'listening')
  onTestFinished(() => void socket.close())
  return socket
}

const silence = 0xff

test('a supervisor hears what comes from the two places of the relay, and nothing else', async () => {
  const mixers = new MixerThread(() => undefined, file)
  onTestFinished(() => mixers.stop())
  const [caller, callee, stranger, phone] = await Promise.all([open(), open(), open(), open()])
  // The port of a party, at another address.
  const other = await open('127.0.0.2', caller.address().port)
  const endpoint = await mixers.open('one', '127.0.0.1', () => undefined)
  if (endpoint === undefined) throw new Error('no mixer')
  expect(endpoint.address).toBe('127.0.0.1')
  const sources = [caller, callee].map((socket) => ({
    port: socket.address().port,
    addresses: ['127.0.0.1'],
  }))
  mixers.setSources('one', sources)
  mixers.play('one', { to: phone.address(), payloadType: 0 })

  const codes: number[] = []
  const received = new Promise<void>((resolve) => {
    phone.on('message', (packet: Buffer) => {
      codes.push(...(readRtp(packet)?.payload ?? []))
      if (codes.filter((code) => code !== silence).length > 800) resolve()
    })
  })
  let at = 0
  const sending = setInterval(() => {
    at += 1
    for (const [socket, code] of [
      // First: of two packets with one number the later one is left out.
      [other, 0x80],
      [caller, 0x9f],
      [callee, 0x9f],
      [stranger, 0x80],
    ] as const) {
      const packet = Buffer.alloc(172, code)
      packet.writeUInt16BE(0x8000, 0)
      packet.writeUInt16BE(at & 0xffff, 2)
      packet.writeUInt32BE(at * 160, 4)
      packet.writeUInt32BE(1, 8)
      socket.send(packet, endpoint.port, endpoint.address)
    }
  }, 20)
  onTestFinished(() => clearInterval(sending))
  await received
  const decoder = decoderOf(0) ?? new Int16Array(0)
  const one = decoder[0x9f] ?? 0
  // Both, or one of them while the other is late; never the stranger, which is louder than both.
  expect(Math.max(...codes.map((code) => decoder[code] ?? 0))).toBeLessThan(one * 2.1)
  expect(Math.max(...codes.map((code) => decoder[code] ?? 0))).toBeGreaterThan(one * 1.9)

  mixers.close('one')
  expect(await mixers.open('other', 'not an address.invalid', () => undefined)).toBeUndefined()
})

test('a thread that ends takes its mixers with it, and the next one starts another', async () => {
  const file = new URL('data:text/javascript,process.exit(1)')
  const mixers = new MixerThread(() => undefined, file)
  const lost = new Promise<void>((resolve) => {
    void mixers.open('one', '127.0.0.1', resolve)
  })
  await lost
  expect(await mixers.open('two', '127.0.0.1', () => undefined)).toBeUndefined()
})
