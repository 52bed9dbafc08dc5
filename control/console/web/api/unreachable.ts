/** Nodes of the platform that did not answer: what is shown is without their part. */
import { computed, signal } from '@preact/signals'
import { after } from '../browser.ts'

/** As the event stream says. */
const ofStream = signal<readonly string[]>([])
/** By the path of the request whose response named them. */
const ofAnswers = signal<ReadonlyMap<string, readonly string[]>>(new Map())

/** A screen that was left asks no more: what it was told is not told for longer. */
const KEPT_MS = 15_000
const expiries = new Map<string, () => void>()

/** Their names, in order. */
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
    after(KEPT_MS, () => forget(place)),
  )
  ofAnswers.value = new Map(ofAnswers.value).set(place, header.split(', '))
}

/** `names`: `unreachable_nodes` of `stream.partial`; empty: the events of all nodes come. */
export function noteStream(names: unknown): void {
  ofStream.value = Array.isArray(names) ? names.filter((name) => typeof name === 'string') : []
}

function forget(place: string): void {
  if (!ofAnswers.value.has(place)) return
  const rest = new Map(ofAnswers.value)
  rest.delete(place)
  ofAnswers.value = rest
}
