import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import {
  attemptTable,
  callTable,
  exchangeTable,
  legTable,
  type StateTable,
  transferTable,
} from '../../../../engine/call/call-machine/tables.ts'
import { stateDiagram } from '../../../support/state-diagram.ts'

interface Machine {
  readonly name: string
  readonly table: StateTable<string, string, string>
  readonly starts: readonly string[]
  readonly ends: readonly string[]
}

const machines: readonly Machine[] = [
  { name: 'call', table: callTable, starts: ['admitting'], ends: ['over'] },
  { name: 'leg', table: legTable, starts: ['incoming', 'calling'], ends: ['terminated'] },
  { name: 'attempt', table: attemptTable, starts: ['silent'], ends: ['answered', 'over'] },
  // It ends with its legs.
  { name: 'exchange', table: exchangeTable, starts: ['stable'], ends: [] },
  { name: 'transfer', table: transferTable, starts: ['ringing'], ends: ['transferred', 'failed'] },
]

/** All states that lie behind these. */
function reachedFrom(table: Machine['table'], starts: readonly string[]): ReadonlySet<string> {
  const reached = new Set(starts)
  for (const state of reached)
    for (const step of Object.values(table[state] ?? {})) if (step) reached.add(step.to)
  return reached
}

describe.each(machines)('the $name machine', ({ table, starts, ends }) => {
  test('reaches every one of its states', () => {
    const reached = [...reachedFrom(table, starts)].toSorted()
    expect(reached).toEqual(Object.keys(table).toSorted())
  })

  test('can end from every state, and does nothing any more then', () => {
    for (const state of ends.length === 0 ? [] : Object.keys(table)) {
      const reached = reachedFrom(table, [state])
      expect(ends.some((end) => reached.has(end))).toBe(true)
    }
    for (const end of ends) expect(table[end]).toEqual({})
  })
})

test('the README shows the machine of calls as it is', () => {
  const diagram = stateDiagram(callTable, ['admitting'], ['over'])
  const readme = readFileSync('engine/call/README.md', 'utf8')
  expect(readme).toContain(`### call\n\n\`\`\`mermaid\n${diagram}\n\`\`\`\n`)
})
