/**
 * The events of the platform for all screens. And which instances did not answer: the screens lack
 * their part.
 */
import { computed, signal } from '@preact/signals'
import { after } from './browser.ts'
import type { StreamEvent } from './event-parser.ts'
import type { StreamState } from './event-stream.ts'
import { shareEventStream } from './shared-stream.ts'

export const connection = signal<StreamState>('connecting')

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

/** Reads events until the returned function is called. `onSignedOut`: the session is over. */
export function readEvents(userId: number, onSignedOut: () => void): () => void {
  connection.value = 'connecting'
  return shareEventStream(`tollgate-events-${userId}`, {
    onEvent: dispatch,
    onConnection: (state) => {
      connection.value = state
      // A stream of which a part is missing says so at its beginning.
      if (state === 'live') noteStream([])
    },
    onSignedOut,
  })
}

function dispatch({ type, data: text }: StreamEvent): void {
  const data = JSON.parse(text) as LiveEvent['data']
  if (type === 'stream.partial') noteStream(data['unreachable_nodes'])
  tellAll({ type, data })
}

/** Everything that is shown is loaded again: something was changed here. */
export const askAnew = (): void => tellAll({ type: 'stream.gap', data: {} })

function tellAll(event: LiveEvent): void {
  for (const read of readers) read(event)
}

/** Unreachable instances that the event stream names. */
const ofStream = signal<readonly string[]>([])
/** Unreachable instances by the path of the request whose response named them. */
const ofAnswers = signal<ReadonlyMap<string, readonly string[]>>(new Map())

/** A screen that was left asks no more; the notice about its instances ends then. */
const CACHE_MS = 15_000
const expiries = new Map<string, () => void>()

/** The names of the unreachable instances, sorted. */
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

/** `names`: `unreachable_nodes` of `stream.partial`; empty: the events of all instances come. */
function noteStream(names: unknown): void {
  ofStream.value = Array.isArray(names) ? names.filter((name) => typeof name === 'string') : []
}

function forget(place: string): void {
  if (!ofAnswers.value.has(place)) return
  const rest = new Map(ofAnswers.value)
  rest.delete(place)
  ofAnswers.value = rest
}
