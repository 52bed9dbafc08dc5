/** Ports of 127.0.0.1 that are unused, for UDP and TCP, and stay so until the test binds them. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'

/**
 * Above 10080, the last one to which `fetch` refuses to go
 * (https://fetch.spec.whatwg.org/#port-blocking); below those that a kernel hands out by itself, to
 * `bind(0)` and to outgoing connections (from 32768 on Linux): one of these would often be gone
 * again before the test has bound it.
 */
const firstPort = 10_500
const portsPerProcess = 1_000
const shares = 22

/** The next three belong to it as well: SIPp uses some for media. */
const step = 4

/**
 * How many ports a process gives before the first comes again: all of its share but the claim's.
 */
const portsGiven = portsPerProcess / step - 1

/**
 * The process's own ports, from the first one on: no other process of this or another run has them.
 */
let ownPorts: Promise<number> | undefined
let given = process.hrtime()[1] % portsGiven

export async function freePort(): Promise<number> {
  const claimed = await (ownPorts ??= claimShare())
  for (let attempt = 0; attempt < portsGiven; attempt++) {
    const port = claimed + step * (1 + (given++ % portsGiven))
    if ((await isFreeForUdp(port)) && (await isFreeForTcp(port))) return port
  }
  throw new Error(`no port from ${claimed} on is free for both UDP and TCP`)
}

/**
 * Listens on the first port of a share as long as this process lives: that is the claim to the
 * others.
 */
async function claimShare(): Promise<number> {
  for (let attempt = 0; attempt < shares; attempt++) {
    const first = firstPort + ((process.pid + attempt) % shares) * portsPerProcess
    if (await claim(first)) return first
  }
  throw new Error(`each of ${shares} shares of the ports from ${firstPort} on is in use`)
}

/** Listens as long as this process lives, or until it is closed; undefined: the port is taken. */
export async function claim(port: number): Promise<Server | undefined> {
  const server = createServer().unref()
  return (await listens(server, port)) ? server : undefined
}

const listens = (server: Server, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => resolve(true))
  })

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
  const isFree = await listens(server, port)
  if (isFree) await new Promise((resolve) => server.close(resolve))
  return isFree
}
