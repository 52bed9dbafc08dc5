/** The tables of a share, and the page that shows them. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { demandTable, shareTable } from '../../../engine/shares/share-tables.ts'
import { stateDiagram } from '../../support/state-diagram.ts'

const readme = readFileSync('engine/shares/README.md', 'utf8')

describe.each([
  { name: 'share', table: shareTable, start: 'stored', ends: [] },
  { name: 'demand', table: demandTable, start: 'growing', ends: [] },
])('the $name machine', ({ name, table, start, ends }) => {
  const steps: Readonly<Record<string, object>> = table
  const targetsOf = (state: string): readonly string[] =>
    Object.values(steps[state] ?? {}).map(({ to }: { readonly to: string }) => to)

  test('reaches every one of its states', () => {
    const reached = new Set([start])
    for (const state of reached) for (const to of targetsOf(state)) reached.add(to)
    expect([...reached].toSorted()).toEqual(Object.keys(table).toSorted())
  })

  test('is shown by the README as it is', () => {
    const diagram = stateDiagram(table, [start], ends)
    expect(readme).toContain(`### ${name}\n\n\`\`\`mermaid\n${diagram}\n\`\`\`\n`)
  })
})

test('a share is stored again after each loss: of an answer, of what it held, of the server', () => {
  for (const state of ['asked', 'askedAgain'] as const)
    expect(shareTable[state].failed?.to).toBe('wanted')
  for (const steps of Object.values(shareTable)) {
    expect(steps.fenced?.to).not.toBe('stored')
    expect(steps.fenced?.do).toEqual(['void', 'forgetStored'])
    expect(steps.serverChanged?.to).not.toBe('stored')
  }
})

test('a share that is closed gives back for ever', () => {
  for (const steps of Object.values(demandTable)) expect(steps.closed?.to).toBe('closing')
  expect(Object.values(demandTable.closing).map(({ to }) => to)).not.toContain('growing')
})
