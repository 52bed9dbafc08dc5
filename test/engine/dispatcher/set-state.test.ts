import { expect, test } from 'vitest'
import { isLastInService, maySetState } from '../../../engine/dispatcher/dispatcher.ts'

type State = 'active' | 'probing' | 'inactive'
const nodes = (...states: readonly State[]) =>
  states.map((state, index) => ({ nodeId: index + 1, state }))

test.each<[readonly State[], number, State, boolean]>([
  [['active', 'inactive'], 1, 'inactive', false],
  [['active'], 1, 'inactive', false],
  [['active', 'probing'], 1, 'inactive', true],
  [['inactive', 'probing'], 2, 'inactive', false],
  [['inactive', 'active'], 1, 'inactive', true],
  [['inactive', 'inactive'], 1, 'inactive', true],
  [['active'], 1, 'probing', true],
  [['inactive'], 1, 'active', true],
])('of nodes %j the node %i may become %s: %s', (states, nodeId, state, isAllowed) => {
  expect(maySetState(nodes(...states), nodeId, state)).toBe(isAllowed)
})

test('a node that is not in the set is never its last one', () => {
  expect(isLastInService(nodes('active'), 9)).toBe(false)
})

test('a probing node whose name DNS does not know is not in service; one that answers is', () => {
  const [first, second] = nodes('active', 'probing')
  const set = [first, { ...second, isUnresolvable: true }] as Parameters<typeof maySetState>[0]
  expect(maySetState(set, 1, 'inactive')).toBe(false)
  expect(maySetState(set, 2, 'inactive')).toBe(true)
  const answering = set.map((node) => ({ ...node, state: 'active' as const }))
  expect(maySetState(answering, 1, 'inactive')).toBe(true)
})
