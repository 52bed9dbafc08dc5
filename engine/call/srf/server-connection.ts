/**
 * What drachtio-srf leaves out on its way to a drachtio-server (`lib/wire-protocol.js`; its version is
 * pinned): it misses no answer of a server that has fallen silent, and connects again without TLS.
 */
import type { Socket } from 'node:net'
import { connect, type ConnectionOptions } from 'node:tls'
import type { Schedule } from '../deadlines.ts'
import type { SocketWire } from './drachtio.ts'

const PING_MS = 5_000

/** One may be late because this process stood still. */
const MAX_SILENT_PINGS = 3

/** A server that is back is found within this time. */
const RETRY_MS = 1_000

/**
 * Asks the server on `socket` all the time whether it is there. One that says nothing for 15 to 20 s
 * is away, whatever its machine's TCP still says: the connection ends, with all that is on it.
 */
export function watchServer(
  socket: Socket,
  wire: SocketWire,
  schedule: Schedule,
  onSilent: () => void,
): void {
  let read = 0
  let silentPings = 0
  const beat = (): void => {
    silentPings = socket.bytesRead === read ? silentPings + 1 : 0
    read = socket.bytesRead
    if (silentPings === MAX_SILENT_PINGS) {
      onSilent()
      socket.destroy()
      return
    }
    wire.send(socket, 'ping')
    cancel = schedule(beat, PING_MS)
  }
  let cancel = schedule(beat, PING_MS)
  socket.once('close', () => cancel())
}

/** Replaces the way in which the library connects again. */
export function connectAgainByTls(
  wire: SocketWire,
  place: { readonly host: string; readonly port: number },
  options: ConnectionOptions,
  schedule: Schedule,
): void {
  let isWaiting = false
  wire._onConnectionGone = () => {
    if (isWaiting || wire.closing === true) return
    isWaiting = true
    schedule(() => {
      isWaiting = false
      if (wire.closing !== true) wire.installListeners(connect({ ...place, ...options }))
    }, RETRY_MS)
  }
}
