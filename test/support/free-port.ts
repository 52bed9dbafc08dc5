/** A UDP and TCP port of 127.0.0.1 that nobody uses right now. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'

export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 20; attempt++) {
    const udp = createSocket('udp4')
    udp.bind(0, '127.0.0.1')
    await once(udp, 'listening')
    const { port } = udp.address()
    const tcp = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      tcp.once('error', () => resolve(false))
      tcp.listen(port, '127.0.0.1', () => resolve(true))
    })
    await new Promise((resolve) => (isFree ? tcp.close(resolve) : resolve(undefined)))
    await new Promise<void>((resolve) => udp.close(resolve))
    if (isFree) return port
  }
  throw new Error('no port is free for both UDP and TCP')
}
