import { expect, test } from 'vitest'
import { isLastInService, maySetState } from '../../../engine/dispatcher/dispatcher.ts'

const nodes = (...states: ('active' | 'probing' | 'inactive')[]) =>
  states.map((state, index) => ({ nodeId: index + 1, state }))

test('the last node that is not in maintenance cannot be taken out', () => {
  expect(maySetState(nodes('active', 'inactive'), 1, 'inactive')).toBe(false)
  expect(maySetState(nodes('active'), 1, 'inactive')).toBe(false)
})

test('a probing node counts as in service, for itself and for the others', () => {
  expect(maySetState(nodes('active', 'probing'), 1, 'inactive')).toBe(true)
  expect(maySetState(nodes('inactive', 'probing'), 2, 'inactive')).toBe(false)
})

test('maintenance of a node in maintenance is no change, even where all are', () => {
  expect(maySetState(nodes('inactive', 'active'), 1, 'inactive')).toBe(true)
  expect(maySetState(nodes('inactive', 'inactive'), 1, 'inactive')).toBe(true)
})

test('active and probing are always allowed', () => {
  expect(maySetState(nodes('active'), 1, 'probing')).toBe(true)
  expect(maySetState(nodes('inactive'), 1, 'active')).toBe(true)
})

test('a node that is not in the set is never its last one', () => {
  expect(isLastInService(nodes('active'), 9)).toBe(false)
})

test('a probing node whose name DNS does not know is not in service', () => {
  const set = [
    { nodeId: 1, state: 'active' },
    { nodeId: 2, state: 'probing', isUnresolvable: true },
  ] as const
  expect(maySetState(set, 1, 'inactive')).toBe(false)
  expect(maySetState(set, 2, 'inactive')).toBe(true)
  // One that answers is in service, whatever DNS says by now.
  expect(maySetState([set[0], { ...set[1], state: 'active' }], 1, 'inactive')).toBe(true)
})
