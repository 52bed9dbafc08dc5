/** The schemas of all tools as a stranger reads them: one word for one thing. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { allTools } from '../../../control/agents/catalog/index.ts'

test('the guide names the scopes of every tool', () => {
  const rows = readFileSync('GUIDE.md', 'utf8').matchAll(/^\| `(\w+)`( \\\*)? +\| (.*?) +\|/gm)
  const shown = new Map([...rows].map(([, name = '', mark, needs = '']) => [name, { mark, needs }]))
  for (const { name, scopes, effect } of allTools) {
    const { mark, needs = '' } = shown.get(name) ?? {}
    const named = [...needs.matchAll(/[a-z]+:[a-z]+/g)].map(([scope]) => scope)
    const own = scopes.filter((scope) => scope !== 'mcp:read' && scope !== 'mcp:write')
    const isChange = effect === 'changes' || effect === 'destroys'
    expect([name, mark !== undefined, named]).toEqual([name, isChange, own])
  }
})
