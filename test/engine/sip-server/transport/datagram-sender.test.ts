import { expect, test } from 'vitest'
import { DatagramSender } from '../../../../engine/sip-server/capture/capture.ts'
import { datagramSink } from '../../../support/datagram-sink.ts'

const hello = Buffer.from('hello')

test('what is sent after the end is lost', async () => {
  const sink = await datagramSink()
  const sender = new DatagramSender('127.0.0.1', sink.port)
  await expect
    .poll(() => {
      sender.send(hello)
      return sink.received.length
    })
    .toBeGreaterThan(0)
  sender.stop()
  expect(() => sender.send(hello)).not.toThrow()
  expect(() => sender.stop()).not.toThrow()
})

test('an end before the place is known', () => {
  const sender = new DatagramSender('127.0.0.1', 9)
  sender.send(hello)
  sender.stop()
  expect(() => sender.send(hello)).not.toThrow()
})
