/**
 * A network between phones and a relay that loses packets. The relay advertises 127.0.0.2: what phones send there is
 * taken here, and handed on both ways, but for every n-th RTP packet that one of the phones sends.
 */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import type { NgDictionary, NgValue } from '../../engine/media/relay/relays.ts'
import type { RtpEngine } from './rtpengine.ts'

export const LOSSY_ADDRESS = '127.0.0.2'
const RELAY_ADDRESS = '127.0.0.1'

export class LossyLink {
  readonly #sockets: Socket[] = []
  readonly #every: number

  constructor(every: number) {
    this.#every = every
  }

  /** Takes over all ports of the relay's only session. */
  async join(relay: RtpEngine): Promise<void> {
    const [session = ''] = await relay.sessions()
    const { tags } = await relay.query(session)
    const parties: readonly NgValue[] = typeof tags === 'object' ? Object.values(tags) : []
    for (const [at, party] of parties.entries())
      for (const port of localPorts(party)) await this.#open(port, at === 0)
  }

  async #open(port: number, isLossy: boolean): Promise<void> {
    const socket = createSocket('udp4')
    this.#sockets.push(socket)
    socket.bind(port, LOSSY_ADDRESS)
    await once(socket, 'listening')
    let count = 0
    let phone = 0
    socket.on('message', (packet, { address, port: from }) => {
      const way = address === RELAY_ADDRESS && from === port ? 'down' : 'up'
      if (way === 'up') phone = from
      // RTCP has the odd ports, and passes.
      const isLosable = isLossy && way === 'up' && port % 2 === 0
      if (isLosable && ++count % this.#every === 0) return
      if (way === 'up') socket.send(packet, port, RELAY_ADDRESS)
      else if (phone !== 0) socket.send(packet, phone, RELAY_ADDRESS)
    })
    socket.on('error', () => undefined)
  }

  close(): void {
    for (const socket of this.#sockets.splice(0)) socket.close()
  }
}

function localPorts(value: NgValue): readonly number[] {
  if (typeof value !== 'object') return []
  const port = isDictionary(value) ? value['local port'] : undefined
  const inside = Object.values(value).flatMap((each: NgValue) => localPorts(each))
  return typeof port === 'number' ? [port, ...inside] : inside
}

const isDictionary = (value: object): value is NgDictionary => !Array.isArray(value)
