/**
 * One event stream for all tabs of a user. A browser opens six connections to a server: a stream
 * for each tab would leave the seventh none. The tab that holds the lock reads the stream and
 * passes it to the others; when it goes, the next one goes on behind the last event.
 */
import { whileVisible } from './browser.ts'
import type { StreamEvent } from './event-parser.ts'
import { type StreamState, gap, openEventStream, type StreamReader } from './event-stream.ts'

type Message =
  | { readonly kind: 'event'; readonly event: StreamEvent }
  | { readonly kind: 'connection'; readonly connection: StreamState }
  | { readonly kind: 'signed-out' }
  /** A tab that has just opened asks how the stream is. */
  | { readonly kind: 'question' }

/**
 * Reads the stream that all tabs with this `name` share until the returned function is called. A
 * page that the browser keeps for its back button holds no connection meanwhile.
 */
export function shareEventStream(name: string, reader: StreamReader): () => void {
  const locks = navigator.locks as LockManager | undefined
  if (locks === undefined) return readWhileVisible(reader)
  let leave = join(name, reader, locks)
  const hide = (): void => leave()
  const show = ({ persisted }: PageTransitionEvent): void => {
    if (!persisted) return
    leave = join(name, reader, locks)
    reader.onEvent(gap)
  }
  addEventListener('pagehide', hide)
  addEventListener('pageshow', show)
  return () => {
    removeEventListener('pagehide', hide)
    removeEventListener('pageshow', show)
    leave()
  }
}

/**
 * Browsers have locks on https:// and loopback only: elsewhere each tab reads for itself, while it
 * is visible.
 */
function readWhileVisible(reader: StreamReader): () => void {
  let lastId: string | undefined
  const onEvent = (event: StreamEvent): void => {
    if (event.id !== '') lastId = event.id
    reader.onEvent(event)
  }
  return whileVisible(() => openEventStream({ ...reader, onEvent }, lastId))
}

function join(name: string, reader: StreamReader, locks: LockManager): () => void {
  const channel = new BroadcastChannel(name)
  const left = new AbortController()
  let lastId: string | undefined
  /** Undefined: another tab reads the stream. */
  let own: StreamState | undefined
  /** The event that says which part of the stream is missing. */
  let partial: StreamEvent | undefined

  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has one origin
  const post = (message: Message): void => channel.postMessage(message)
  const take = (message: Message): void => {
    if (message.kind === 'connection') reader.onConnection(message.connection)
    else if (message.kind === 'signed-out') reader.onSignedOut()
    else if (message.kind === 'event') {
      if (message.event.id !== '') lastId = message.event.id
      reader.onEvent(message.event)
    } else if (own !== undefined) {
      post({ kind: 'connection', connection: own })
      if (partial !== undefined) post({ kind: 'event', event: partial })
    }
  }
  const tell = (message: Message): void => {
    post(message)
    take(message)
  }
  const read = (): (() => void) => {
    const onConnection = (connection: StreamState): void => {
      own = connection
      partial = undefined
      tell({ kind: 'connection', connection })
    }
    const onEvent = (event: StreamEvent): void => {
      if (event.type === 'stream.partial') partial = event
      tell({ kind: 'event', event })
    }
    onConnection('connecting')
    const onSignedOut = (): void => tell({ kind: 'signed-out' })
    return openEventStream({ onConnection, onEvent, onSignedOut }, lastId)
  }
  /** Holds the lock until this tab leaves. */
  const lead = (): Promise<void> => {
    const close = read()
    return new Promise((resolve) => {
      left.signal.addEventListener('abort', () => {
        close()
        resolve()
      })
    })
  }

  channel.addEventListener('message', ({ data }: MessageEvent<Message>) => take(data))
  post({ kind: 'question' })
  // Rejects when this tab leaves before it is its turn.
  void locks.request(name, { signal: left.signal }, lead).catch(() => undefined)
  return () => {
    left.abort()
    channel.close()
  }
}
