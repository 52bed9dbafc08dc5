/** The chosen rows of a table, by their keys: one by one, in ranges, or all that are shown. */
import { type Signal, useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { between, MAX_CHOSEN, type RowKey, turnedTo } from './row-keys.ts'

export interface ChosenRows {
  readonly keys: Signal<ReadonlySet<RowKey>>
  /** `isRange`: with all between it and the one before. `shown`: the keys in their order. */
  readonly turn: (key: RowKey, shown: readonly RowKey[], isRange: boolean) => void
  readonly turnAll: (shown: readonly RowKey[]) => void
  readonly choose: (keys: readonly RowKey[]) => void
}

export function useChosenRows(): ChosenRows {
  const keys = useSignal<ReadonlySet<RowKey>>(new Set())
  const last = useRef<RowKey | undefined>(undefined)
  const choose = (chosen: Iterable<RowKey>): void => {
    keys.value = new Set([...chosen].slice(0, MAX_CHOSEN))
  }
  return {
    keys,
    turn: (key, shown, isRange) => {
      const isOn = !keys.peek().has(key)
      const turned = isRange ? between(shown, last.current, key) : [key]
      last.current = key
      choose(turnedTo(keys.peek(), turned, isOn))
    },
    turnAll: (shown) => {
      last.current = undefined
      choose(
        turnedTo(
          keys.peek(),
          shown,
          shown.some((key) => !keys.peek().has(key)),
        ),
      )
    },
    choose: (chosen) => {
      last.current = undefined
      choose(chosen)
    },
  }
}
