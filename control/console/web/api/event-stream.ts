/** One connection to the event stream, opened again when it is lost. */
import { after } from './browser.ts'
import { EventParser, type StreamEvent } from './event-parser.ts'

export type StreamState = 'connecting' | 'live' | 'lost'

export interface StreamReader {
  readonly onEvent: (event: StreamEvent) => void
  readonly onConnection: (connection: StreamState) => void
  /** The session is over; the stream is not opened again. */
  readonly onSignedOut: () => void
}

/**
 * The event that tells a reader that it has missed others, so that everything shown is loaded
 * again.
 */
export const gap: StreamEvent = { id: '', type: 'stream.gap', data: '{}' }

const FIRST_WAIT_MS = 1_000
const LONGEST_WAIT_MS = 15_000
/** The server writes every 15 s at least. */
const SILENCE_MS = 40_000

/**
 * Reads events until the returned function is called.
 *
 * @param lastId id of the last event that is known; the server sends what came after it.
 */
export function openEventStream(reader: StreamReader, lastId: string | undefined): () => void {
  let abort = new AbortController()
  let isOver = false
  let waitMs = FIRST_WAIT_MS
  let cancelRetry = () => {}
  let knownId = lastId
  let state: StreamState = 'connecting'

  const become = (next: StreamState): void => {
    state = next
    reader.onConnection(next)
  }
  const onOpen = (): void => {
    const wasLost = state === 'lost'
    become('live')
    if (wasLost && knownId === undefined) reader.onEvent(gap)
  }
  const onEvent = (event: StreamEvent): void => {
    if (event.id !== '') knownId = event.id
    reader.onEvent(event)
  }
  const connect = async (): Promise<void> => {
    abort = new AbortController()
    const status = await readOnce(abort, knownId, onOpen, onEvent).catch(() => undefined)
    if (isOver) return
    if (status === 401) return reader.onSignedOut()
    // A stream that was open has ended as planned, or with the connection: the next one may come
    // soon.
    if (state === 'live') waitMs = FIRST_WAIT_MS
    become('lost')
    cancelRetry = after(waitMs, () => void connect())
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)
  }

  void connect()
  return () => {
    isOver = true
    cancelRetry()
    abort.abort()
  }
}

/** Resolves at the end of the stream with the status of the answer. */
async function readOnce(
  abort: AbortController,
  lastId: string | undefined,
  onOpen: () => void,
  onEvent: (event: StreamEvent) => void,
): Promise<number> {
  const response = await fetch('/api/v1/events', {
    headers: {
      Accept: 'text/event-stream',
      ...(lastId !== undefined && { 'Last-Event-ID': lastId }),
    },
    signal: abort.signal,
  })
  if (!response.ok || response.body === null) return response.status
  onOpen()
  const parser = new EventParser()
  const decoder = new TextDecoder()
  const reader = response.body.getReader()
  for (;;) {
    const cancel = after(SILENCE_MS, () => abort.abort())
    const { done, value } = await reader.read().finally(cancel)
    if (done) return response.status
    for (const event of parser.push(decoder.decode(value, { stream: true }))) onEvent(event)
  }
}
