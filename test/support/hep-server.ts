/**
 * A Homer of this test: reads HEP version 3 by UDP or TLS, as "HEP/EEP Network Protocol
 * Specification" describes it.
 */
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { createServer } from 'node:tls'
import { onTestFinished } from 'vitest'
import type { Certificate } from './certificates.ts'
import { datagramSink } from './datagram-sink.ts'
import { emitted } from './waiting.ts'

export interface HepPacket {
  readonly isIpv6: boolean
  /** The protocol number of IP: 17 is UDP, 6 is TCP. */
  readonly protocol: number
  /** As hexadecimal digits. */
  readonly source: string
  readonly destination: string
  readonly sourcePort: number
  readonly destinationPort: number
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly agentId: number
  readonly key: string | undefined
  readonly correlationId: string | undefined
  readonly payload: string
}

/** @throws {Error} the bytes are not one packet. */
function readPacket(bytes: Buffer): HepPacket {
  const chunks = new Map<number, Buffer>()
  for (let at = 6; at < bytes.length;) {
    const [vendor, type, length] = [0, 2, 4].map((field) => bytes.readUInt16BE(at + field))
    if (vendor !== 0 || type === undefined || length === undefined || length < 7)
      throw new Error(`a chunk of vendor ${vendor}, type ${type}, length ${length}`)
    if (chunks.has(type)) throw new Error(`chunk ${type} twice`)
    chunks.set(type, bytes.subarray(at + 6, at + length))
    at += length
    if (at > bytes.length) throw new Error(`chunk ${type} is longer than its packet`)
  }
  const number = (type: number): number => {
    const value = chunks.get(type)
    if (value === undefined) throw new Error(`no chunk ${type}`)
    return value.readUIntBE(0, value.length)
  }
  const isIpv6 = number(1) === 10
  if (!isIpv6 && number(1) !== 2) throw new Error(`address family ${number(1)}`)
  if (number(11) !== 1) throw new Error(`not SIP, but ${number(11)}`)
  return {
    isIpv6,
    protocol: number(2),
    source: chunks.get(isIpv6 ? 5 : 3)?.toString('hex') ?? '',
    destination: chunks.get(isIpv6 ? 6 : 4)?.toString('hex') ?? '',
    sourcePort: number(7),
    destinationPort: number(8),
    at: number(9) * 1_000 + number(10) / 1_000,
    agentId: number(12),
    key: chunks.get(14)?.toString(),
    correlationId: chunks.get(17)?.toString(),
    payload: chunks.get(15)?.toString() ?? '',
  }
}

/** Packets that follow one another; the rest is the beginning of the next one. */
function readPackets(bytes: Buffer): { packets: HepPacket[]; rest: Buffer } {
  const packets: HepPacket[] = []
  let rest = bytes
  while (rest.length >= 6) {
    if (rest.toString('latin1', 0, 4) !== 'HEP3') throw new Error('a packet begins with no HEP3')
    const length = rest.readUInt16BE(4)
    if (length > rest.length) break
    packets.push(readPacket(rest.subarray(0, length)))
    rest = rest.subarray(length)
  }
  return { packets, rest }
}

export interface HepServer {
  readonly port: number
  /** All that have come. */
  packets(): readonly HepPacket[]
}

export async function hepByUdp(): Promise<HepServer> {
  const { port, received } = await datagramSink()
  const packets = () =>
    received.map((bytes) => {
      const { packets: read, rest } = readPackets(bytes)
      const [packet] = read
      if (packet === undefined || read.length > 1 || rest.length > 0)
        throw new Error('a datagram is one packet')
      return packet
    })
  return { port, packets }
}

/** `isReading`: false leaves what comes in the socket. */
export async function hepByTls(
  { certFile, keyFile }: Certificate,
  { port = 0, isReading = true } = {},
): Promise<HepServer & { readonly connections: Set<Socket>; stop(): void }> {
  const streams = new Map<Socket, Buffer[]>()
  const connections = new Set<Socket>()
  const server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) })
  server.on('secureConnection', (socket) => {
    connections.add(socket)
    const read: Buffer[] = []
    streams.set(socket, read)
    socket.on('error', () => undefined)
    socket.on('close', () => connections.delete(socket))
    if (isReading) socket.on('data', (bytes: Buffer) => read.push(bytes))
  })
  server.on('tlsClientError', () => undefined)
  server.listen(port, '127.0.0.1')
  await emitted(server, 'listening')
  const stop = (): void => {
    server.close()
    for (const socket of connections) socket.destroy()
  }
  onTestFinished(stop)
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const packets = () =>
    [...streams.values()].flatMap((read) => readPackets(Buffer.concat(read)).packets)
  return { port: address.port, packets, connections, stop }
}
