import { expect, test } from 'vitest'
import { atMostEvery } from '../../../../control/console/web/api/at-most-every.ts'

/** Draws at most every 250 ms of a clock that is moved by hand. */
function drawn() {
  let present = 0
  let due: { readonly at: number; readonly work: () => void } | undefined
  const at: number[] = []
  const after = (ms: number, work: () => void) => {
    due = { at: present + ms, work }
    return () => (due = undefined)
  }
  const { ask, end } = atMostEvery(250, after, () => at.push(present))
  const pass = (ms: number): void => {
    const end = present + ms
    while (due !== undefined && due.at <= end) {
      const { at: then, work } = due
      present = then
      due = undefined
      work()
    }
    present = end
  }
  return { at, ask, end, pass }
}

test('what changes thirty times a second is drawn at once, then four times a second, with the last change', () => {
  const { at, ask, pass } = drawn()
  for (let change = 0; change < 30; change += 1) {
    ask()
    pass(33)
  }
  pass(1_010)
  expect(at).toEqual([0, 250, 500, 750, 1_000])
  ask()
  expect(at).toEqual([0, 250, 500, 750, 1_000, 2_000])
})

test('after its end nothing is drawn', () => {
  const { at, ask, end, pass } = drawn()
  ask()
  ask()
  end()
  pass(1_000)
  expect(at).toEqual([0])
})
