/** Data of the API on a screen: loaded when the screen opens, and again when asked. */
import { useSignal, type ReadonlySignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { get, type ConsoleAnswer } from '../api/api.ts'
import { onEvent, type LiveEvent } from '../api/live.ts'
import { sessionEnded } from '../api/session.ts'
import { every } from '../api/browser.ts'

export interface Resource<T> {
  /** Undefined before the first answer. */
  readonly data: ReadonlySignal<T | undefined>
  readonly problem: ReadonlySignal<string | undefined>
  /** There is no such thing, or the user may not see it. */
  readonly isGone: ReadonlySignal<boolean>
  readonly reload: () => void
}

interface ResourceOptions {
  /** Loads it again while the page is visible. */
  readonly everyMs?: number | (() => number)
  /** Loads it again after such an event. */
  readonly events?: RegExp | ((event: LiveEvent) => boolean)
}

/** The least time between two requests, whether the clock or events cause them. */
const TICK_MS = 1_000

/** `key`: loads anew when it changes. */
export function useResource<T>(
  key: string,
  load: () => Promise<ConsoleAnswer<T>>,
  { everyMs, events }: ResourceOptions = {},
): Resource<T> {
  const data = useSignal<T | undefined>(undefined)
  const problem = useSignal<string | undefined>(undefined)
  const isGone = useSignal(false)
  const isDue = useRef(false)
  const turn = useRef(0)
  const busy = useRef(false)

  const reload = async (): Promise<void> => {
    const mine = (turn.current += 1)
    busy.current = true
    const answer = await load()
    busy.current = false
    // A later request has been made, or the screen is closed.
    if (mine !== turn.current) return
    if (answer.kind === 'signed-out') return sessionEnded()
    problem.value = answer.kind === 'failed' ? answer.message : undefined
    isGone.value = answer.kind === 'failed' && answer.code === 'not_found'
    if (answer.kind === 'ok') data.value = answer.data
  }

  // Not after the next frame: the request is on its way while that is drawn.
  useLayoutEffect(() => {
    data.value = undefined
    void reload()
    const isMeant = (event: LiveEvent) =>
      typeof events === 'function' ? events(event) : events?.test(event.type) === true
    const wanted = (event: LiveEvent) => event.type === 'stream.gap' || isMeant(event)
    let ticks = 0
    const stops = [
      onEvent((event) => void (isDue.current ||= wanted(event))),
      every(TICK_MS, () => {
        ticks += 1
        const period = typeof everyMs === 'function' ? everyMs() : everyMs
        if (period !== undefined && ticks * TICK_MS >= period) isDue.current = true
        if (!isDue.current || busy.current) return
        isDue.current = false
        ticks = 0
        void reload()
      }),
    ]
    return () => {
      turn.current += 1
      for (const stop of stops) stop()
    }
  }, [key])
  return { data, problem, isGone, reload: () => void reload() }
}

/** The answer of one path, in the envelope. */
export const useView = <T>(path: string, options?: ResourceOptions): Resource<T> =>
  useResource(path, () => get<T>(path), options)
