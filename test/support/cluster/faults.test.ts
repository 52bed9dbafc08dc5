import { expect, test } from 'vitest'
import { faultKinds, planFaults, type Fault } from './faults.ts'

const options = {
  seed: 7,
  nodes: 3,
  durationMs: 600_000,
  everyMs: 5_000,
  pauseMs: 30_000,
  cutMs: 15_000,
  kinds: faultKinds,
}

test('a seed gives the same faults again, and another one others', () => {
  expect(planFaults(options)).toEqual(planFaults(options))
  expect(planFaults({ ...options, seed: 8 })).not.toEqual(planFaults(options))
})

test('a long run has faults of every kind at every node, and each is over when the run is', () => {
  const plan = planFaults(options)
  expect(new Set(plan.map(({ kind }) => kind))).toEqual(new Set(faultKinds))
  expect(new Set(plan.map(({ target }) => target))).toEqual(new Set([0, 1, 2]))
  expect(plan.filter(({ atMs, forMs }) => atMs + forMs > options.durationMs)).toEqual([])
})

test('a node has one fault at a time, and so has the database', () => {
  const part = ({ kind, target }: Fault): number => (kind === 'restart database' ? -1 : target)
  const plan = planFaults(options)
  const overlapping = plan.filter((fault, index) =>
    plan
      .slice(0, index)
      .some((other) => part(other) === part(fault) && other.atMs + other.forMs > fault.atMs),
  )
  expect(overlapping).toEqual([])
})

test('only the wanted kinds are planned', () => {
  const plan = planFaults({ ...options, kinds: ['kill'] })
  expect(plan.length).toBeGreaterThan(10)
  expect(plan.every(({ kind }) => kind === 'kill')).toBe(true)
})
