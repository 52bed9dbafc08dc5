/**
 * The thread that mixes audio for supervisors. One socket for each receives from the relay and
 * sends the mix.
 */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import { performance } from 'node:perf_hooks'
import { parentPort } from 'node:worker_threads'
import { runBehindCalls } from '../../../schema/behind-calls.ts'
import type { MediaEndpoint, AudioTarget } from '../../call/monitoring/listening-legs.ts'
import { Mix } from './mix.ts'

/** The source address of a party at the relay. */
export interface RelayedSource {
  readonly addresses: readonly string[]
  readonly port: number
}

export type MixerOrder = { readonly id: string } &
  /** `relay`: the address that will send. */
  (
    | { readonly type: 'open'; readonly relay: string }
    /** The sources of the two parties. */
    | { readonly type: 'sources'; readonly sources: readonly RelayedSource[] }
    /** Undefined: the supervisor holds. */
    | { readonly type: 'play'; readonly target: AudioTarget | undefined }
    | { readonly type: 'close' }
  )

/** A mixer is open, or could not be opened. */
export interface MixerReport {
  readonly id: string
  readonly endpoint: MediaEndpoint | undefined
}

interface Mixer {
  readonly socket: Socket
  readonly mix: Mix
  sources: readonly RelayedSource[]
  target: AudioTarget | undefined
}

const FRAME_MS = 20
/** Frames that are sent at once; after a longer standstill those in between are left out. */
const MAX_FRAMES_AT_ONCE = 5

/** Supervisors listen meanwhile. */
runBehindCalls(5)

const mixers = new Map<string, Mixer>()
/** Mixers that are being opened, and were not closed since. */
const opening = new Set<string>()
let ticking: NodeJS.Timeout | undefined
let tickedAt = 0

parentPort?.on('message', (order: MixerOrder) => {
  if (order.type === 'open') return void open(order.id, order.relay)
  if (order.type === 'close') opening.delete(order.id)
  const mixer = mixers.get(order.id)
  if (mixer === undefined) return undefined
  if (order.type === 'sources') mixer.sources = order.sources
  else if (order.type === 'play') mixer.target = order.target
  else close(order.id, mixer)
  return undefined
})

async function open(id: string, relay: string): Promise<void> {
  const report = (endpoint: MediaEndpoint | undefined): void =>
    parentPort?.postMessage({ id, endpoint } satisfies MixerReport, [])
  opening.add(id)
  const type = isIPv6(relay) ? 'udp6' : 'udp4'
  const socket = createSocket(type)
  try {
    socket.bind(0, await ownAddress(type, relay))
    await once(socket, 'listening')
  } catch {
    opening.delete(id)
    socket.close()
    return report(undefined)
  }
  if (!opening.delete(id)) return void socket.close()
  // An SSRC has to differ from others in its session only, and there are none.
  const mix = new Mix(socket.address().port)
  const mixer: Mixer = { socket, mix, sources: [], target: undefined }
  mixers.set(id, mixer)
  socket.on('error', () => undefined)
  socket.on('message', (packet, from) => {
    const source = mixer.sources.findIndex(
      ({ addresses, port }) => port === from.port && addresses.includes(from.address),
    )
    if (source === 0 || source === 1) mixer.mix.push(source, packet)
  })
  if (ticking === undefined) {
    tickedAt = performance.now()
    ticking = setInterval(tick, FRAME_MS)
  }
  return report(socket.address())
}

/** The address of this machine that the relay knows: the one from which it is reached. */
async function ownAddress(type: 'udp4' | 'udp6', relay: string): Promise<string> {
  const probe = createSocket(type)
  try {
    probe.connect(9, relay)
    await once(probe, 'connect')
    return probe.address().address
  } finally {
    probe.close()
  }
}

function tick(): void {
  const now = performance.now()
  const due = Math.floor((now - tickedAt) / FRAME_MS)
  tickedAt = due > MAX_FRAMES_AT_ONCE ? now : tickedAt + due * FRAME_MS
  for (let frame = 0; frame < Math.min(due, MAX_FRAMES_AT_ONCE); frame++)
    for (const { mix, target, socket } of mixers.values())
      if (target) socket.send(mix.next(target.payloadType), target.to.port, target.to.address)
}

function close(id: string, { socket }: Mixer): void {
  mixers.delete(id)
  socket.close()
  if (mixers.size > 0) return
  clearInterval(ticking)
  ticking = undefined
}
