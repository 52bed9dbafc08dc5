/** Parts of the console that are loaded when they are drawn for the first time. */
import { signal } from '@preact/signals'
import type { ComponentChildren, ComponentType } from 'preact'
import { useLayoutEffect } from 'preact/hooks'
import { Problem } from './text.tsx'

export const notLoaded = 'A part of the console could not be loaded: load the page again.'

/** `waiting`: what has its place until then. */
export function later<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
  waiting: ComponentChildren = <p class="empty">Loading …</p>,
): ComponentType<Props> {
  const loaded = signal<{ readonly Part: ComponentType<Props> } | undefined>(undefined)
  const problem = signal<string | undefined>(undefined)
  const ask = async (): Promise<void> => {
    if (loaded.value !== undefined) return
    try {
      loaded.value = { Part: await load() }
      problem.value = undefined
    } catch {
      // Asked for again where it is drawn again.
      problem.value = notLoaded
    }
  }
  return function Later(props: Props) {
    // Not after the next frame: nothing is to be seen before it is there.
    useLayoutEffect(() => void ask(), [])
    if (loaded.value === undefined)
      return problem.value === undefined ? <>{waiting}</> : <Problem message={problem.value} />
    const { Part } = loaded.value
    return <Part {...props} />
  }
}
