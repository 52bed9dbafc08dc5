/**
 * The library's connection without a socket: payloads are strings, with no framing and
 * no copy. It replaces the library's `WireProtocol` (`lib/wire-protocol.js`) and
 * does for the agent what `DrachtioAgent.connect` does; the library's version is pinned for this.
 */
import { Socket } from 'node:net'
import type { Srf } from './drachtio.ts'

/** What the server calls: asynchronously, one payload at a time, in order. */
export interface InProcessClient {
  onPayload(payload: string): void
  onClose(): void
}

/** What we call. `send` must not call back before it has returned. */
export interface InProcessLink {
  send(payload: string): void
  close(): void
}

export type OpenInProcess = (client: InProcessClient) => InProcessLink

/** Connects `srf`. `onPayload` sees every payload before it is handled. */
export function attachInProcess(
  srf: Srf,
  { secret, open }: { readonly secret: string; readonly open: OpenInProcess },
  onPayload: (payload: string) => void,
): void {
  // The agent keeps its state by socket and insists on the type; this one is never connected.
  const socket = new Socket()
  const agent = (srf.app.client = srf.app._init())
  const link = open({
    onPayload(payload) {
      onPayload(payload)
      agent._onMsg(socket, brief(payload))
    },
    onClose() {
      agent._onClose(socket)
      agent.emit('close')
    },
  })
  agent.secret = secret
  agent.tags = []
  agent.wp = wireOver(link)
  agent._onConnect(socket)
}

/**
 * The library parses everything that it is given, so less is faster (D86): of a message that was sent for us it
 * gets the start line, the headers that it reads, and the body.
 */
export function brief(payload: string): string {
  const head = payload.indexOf('\r\n')
  if (head === -1 || !payload.startsWith(SENT, head - SENT.length)) return payload
  const start = payload.indexOf('\r\n', head + 2)
  const body = payload.indexOf('\r\n\r\n', start)
  if (start === -1 || body === -1) return payload
  let kept = payload.slice(0, start)
  for (let at = start; at < body;) {
    const end = payload.indexOf('\r\n', at + 2)
    if (isRead.test(payload.slice(at + 2, at + 2 + LONGEST_NAME))) kept += payload.slice(at, end)
    at = end
  }
  return kept + payload.slice(body)
}

const SENT = 'Msg sent:|'
const isRead = /^(?:from|to|call-id|cseq|contact|rseq|require|[ftim])\s*:/i
const LONGEST_NAME = 'call-id  :'.length

/** The members of `WireProtocol` that the agent uses on a client connection. */
function wireOver(link: InProcessLink) {
  let sent = 0
  return {
    isClient: true,
    isServer: false,
    send(_socket: Socket, message: string): string {
      const id = `i${++sent}`
      link.send(`${id}|${message}`)
      return id
    },
    startPinging: () => undefined,
    disconnect: () => link.close(),
  }
}
