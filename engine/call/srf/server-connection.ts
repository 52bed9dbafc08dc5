/**
 * What drachtio-srf lacks towards a drachtio-server (`lib/wire-protocol.js`; its version is pinned): it does not
 * notice a silent server, and reconnects without TLS.
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
 * Pings the server on `socket`. After 15 to 20 s without a byte it counts as away, whatever TCP still
 * acknowledges: the connection is closed, with all that is on it.
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
