import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type Health,
  afterCall,
  afterProbe,
  newHealth,
} from '../../../engine/dispatcher/node-health.ts'

const limits = { failuresToProbing: 3, successesToActive: 3 }

const afterProbes = (health: Health, probes: readonly boolean[]) =>
  probes.reduce((current, isUp) => afterProbe(current, isUp, limits), health)

test('three consecutive failed probes make an active node probing, two do not', () => {
  expect(afterProbes(newHealth('active'), [false, false]).state).toBe('active')
  expect(afterProbes(newHealth('active'), [false, false, false]).state).toBe('probing')
})

test('an answer in between starts the count anew', () => {
  expect(afterProbes(newHealth('active'), [false, false, true, false, false]).state).toBe('active')
})

test('three consecutive answers bring a probing node back, an interrupted row does not', () => {
  expect(afterProbes(newHealth('probing'), [true, true, false, true, true]).state).toBe('probing')
  expect(afterProbes(newHealth('probing'), [true, true, true]).state).toBe('active')
})

test('no sequence of probes and calls ends maintenance', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('up', 'down', 'answered', 'failed')), (events) => {
      const end = events.reduce<Health>((health, event) => {
        if (event === 'answered' || event === 'failed') return afterCall(health, event, limits)
        return afterProbe(health, event === 'up', limits)
      }, newHealth('inactive'))
      expect(end.state).toBe('inactive')
    }),
    { seed: 1 },
  )
})

test('a failed call counts as a failed probe', () => {
  const twice = afterProbes(newHealth('active'), [false, false])
  expect(afterCall(twice, 'failed', limits).state).toBe('probing')
})

test('an answered call forgives failures but does not bring a node back', () => {
  const twice = afterProbes(newHealth('active'), [false, false])
  expect(afterCall(twice, 'answered', limits).failures).toBe(0)
  const nearlyBack = afterProbes(newHealth('probing'), [true, true])
  expect(afterCall(nearlyBack, 'answered', limits)).toEqual(nearlyBack)
})
