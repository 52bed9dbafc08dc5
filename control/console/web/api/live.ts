/**
 * The event stream: one connection for all screens, opened again when it is lost. And which nodes of the platform did
 * not answer: the screens lack their part.
 */
import { computed, signal } from '@preact/signals'
import { after } from './browser.ts'
import { EventParser, type StreamEvent } from './event-parser.ts'

export type Connection = 'connecting' | 'live' | 'lost'
export const connection = signal<Connection>('connecting')

export interface LiveEvent {
  /** `stream.gap`: events are missing, so everything shown has to be loaded again. */
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}

const readers = new Set<(event: LiveEvent) => void>()

/** Calls `read` with each event until the returned function is called. */
export function onEvent(read: (event: LiveEvent) => void): () => void {
  readers.add(read)
  return () => void readers.delete(read)
}

const FIRST_WAIT_MS = 1_000
const LONGEST_WAIT_MS = 15_000
/** The server writes every 15 s at least. */
const SILENCE_MS = 40_000

/** Reads events until the returned function is called. `onSignedOut`: the session is over. */
export function readEvents(onSignedOut: () => void): () => void {
  let abort = new AbortController()
  let isOver = false
  let waitMs = FIRST_WAIT_MS
  let cancelRetry = () => {}
  let lastId: string | undefined

  const connect = async (): Promise<void> => {
    abort = new AbortController()
    const status = await readOnce(abort, lastId, (event) => {
      lastId = event.id === '' ? lastId : event.id
      dispatch(event)
    }).catch(() => undefined)
    if (isOver) return
    if (status === 401) return onSignedOut()
    // A stream that was open has ended as planned, or with the connection: the next one may come soon.
    if (connection.value === 'live') waitMs = FIRST_WAIT_MS
    connection.value = 'lost'
    cancelRetry = after(waitMs, () => void connect())
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)
  }

  connection.value = 'connecting'
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
  onStreamEvent: (event: StreamEvent) => void,
): Promise<number> {
  const response = await fetch('/api/v1/events', {
    headers: {
      Accept: 'text/event-stream',
      ...(lastId !== undefined && { 'Last-Event-ID': lastId }),
    },
    signal: abort.signal,
  })
  if (!response.ok || response.body === null) return response.status
  const wasLost = connection.value === 'lost'
  connection.value = 'live'
  // A stream of which a part is missing says so at its beginning.
  noteStream([])
  if (wasLost && lastId === undefined) tellAll({ type: 'stream.gap', data: {} })
  const parser = new EventParser()
  const decoder = new TextDecoder()
  const reader = response.body.getReader()
  for (;;) {
    const cancel = after(SILENCE_MS, () => abort.abort())
    const { done, value } = await reader.read().finally(cancel)
    if (done) return response.status
    for (const event of parser.push(decoder.decode(value, { stream: true }))) onStreamEvent(event)
  }
}

function dispatch({ type, data: text }: StreamEvent): void {
  const data = JSON.parse(text) as LiveEvent['data']
  if (type === 'stream.partial') noteStream(data['unreachable_nodes'])
  tellAll({ type, data })
}

function tellAll(event: LiveEvent): void {
  for (const read of readers) read(event)
}

/** As the event stream says. */
const ofStream = signal<readonly string[]>([])
/** By the path of the request whose response named them. */
const ofAnswers = signal<ReadonlyMap<string, readonly string[]>>(new Map())

/** A screen that was left asks no more; the notice about its nodes ends then. */
const CACHE_MS = 15_000
const expiries = new Map<string, () => void>()

/** The names of the unreachable nodes, sorted. */
export const unreachable = computed<readonly string[]>(() =>
  [...new Set([...ofStream.value, ...[...ofAnswers.value.values()].flat()])].toSorted(),
)

/** `header`: `X-Unreachable-Nodes` of a response; null: all have answered, or none was asked. */
export function noteAnswer(path: string, header: string | null): void {
  const [place = path] = path.split('?', 1)
  expiries.get(place)?.()
  expiries.delete(place)
  if (header === null) return forget(place)
  expiries.set(
    place,
    after(CACHE_MS, () => forget(place)),
  )
  ofAnswers.value = new Map(ofAnswers.value).set(place, header.split(', '))
}

/** `names`: `unreachable_nodes` of `stream.partial`; empty: the events of all nodes come. */
function noteStream(names: unknown): void {
  ofStream.value = Array.isArray(names) ? names.filter((name) => typeof name === 'string') : []
}

function forget(place: string): void {
  if (!ofAnswers.value.has(place)) return
  const rest = new Map(ofAnswers.value)
  rest.delete(place)
  ofAnswers.value = rest
}
