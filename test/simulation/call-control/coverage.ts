/** How often each transition of the tables is taken. */
import {
  attemptTable,
  callTable,
  exchangeTable,
  legTable,
  type StateTable,
  transferTable,
} from '../../../engine/call/call-machine/tables.ts'

const tables: Readonly<Record<string, StateTable<string, string, string>>> = {
  call: callTable,
  leg: legTable,
  attempt: attemptTable,
  exchange: exchangeTable,
  transfer: transferTable,
}

/** Counts from now on, in this process: each entry is read when it is taken, and only then. */
export function countTransitions(): ReadonlyMap<string, number> {
  const taken = new Map<string, number>()
  for (const [machine, table] of Object.entries(tables))
    for (const [state, transitions] of Object.entries(table))
      for (const [event, step] of Object.entries(transitions)) {
        const name = `${machine}: ${state} ${event}`
        taken.set(name, 0)
        Object.defineProperty(transitions, event, {
          get: () => {
            taken.set(name, (taken.get(name) ?? 0) + 1)
            return step
          },
        })
      }
  return taken
}
