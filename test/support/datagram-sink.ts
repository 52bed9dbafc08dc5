/** A UDP port of this test that keeps what arrives. */
import { createSocket } from 'node:dgram'
import { onTestFinished } from 'vitest'
import { emitted } from './waiting.ts'

export async function datagramSink(): Promise<{
  readonly port: number
  readonly received: readonly Buffer[]
}> {
  const received: Buffer[] = []
  const socket = createSocket('udp4')
  socket.on('message', (bytes) => received.push(bytes))
  socket.bind(0, '127.0.0.1')
  await emitted(socket, 'listening')
  onTestFinished(() => void socket.close())
  return { port: socket.address().port, received }
}
