/** Ports of 127.0.0.1 that nobody uses, neither for UDP nor for TCP, and nobody takes before the test does. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * Below those that a kernel hands out by itself, to `bind(0)` and to outgoing connections (from 32768
 * on Linux): one of these would often be gone again before the test has bound it.
 */
const firstPort = 10_000
const portsPerProcess = 1_000
const shares = 22

/** Whoever gets one may use the next three as well: SIPp takes some for media. */
const step = 4

/** Workers of one run have numbers of their own, and so ports of their own; runs differ by their parent. */
const worker = Number(process.env['VITEST_POOL_ID'] ?? 0)
const ownPorts = firstPort + ((process.ppid + worker) % shares) * portsPerProcess
let taken = process.hrtime()[1] % (portsPerProcess / step)

export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < portsPerProcess; attempt += step) {
    const port = ownPorts + ((taken++ * step) % portsPerProcess)
    if ((await isFreeForUdp(port)) && (await isFreeForTcp(port))) return port
  }
  throw new Error(`no port from ${ownPorts} on is free for both UDP and TCP`)
}

async function isFreeForUdp(port: number): Promise<boolean> {
  const socket = createSocket('udp4')
  const bound = once(socket, 'listening').then(
    () => true,
    () => false,
  )
  socket.bind(port, '127.0.0.1')
  const isFree = await bound
  await new Promise<void>((resolve) => socket.close(resolve))
  return isFree
}

async function isFreeForTcp(port: number): Promise<boolean> {
  const server = createServer()
  const isFree = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => resolve(true))
  })
  if (isFree) await new Promise((resolve) => server.close(resolve))
  return isFree
}
