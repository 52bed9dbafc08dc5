import { expect, test } from 'vitest'
import { simulate } from './calls.ts'

const seeds = 400

test('whatever the network loses, doubles and reorders, calls end on both sides and leave nothing', () => {
  let answered = 0
  for (let seed = 1; seed <= seeds; seed++) {
    const world = simulate(seed)
    expect(world.complaints, `seed ${seed}`).toEqual([])
    answered += world.answered
  }
  // The worlds are not empty: most calls are answered in spite of the weather.
  expect(answered).toBeGreaterThan(seeds)
})

test('whatever connections break or are refused, calls by TCP end on both sides and leave nothing', () => {
  let answered = 0
  for (let seed = 1; seed <= seeds; seed++) {
    const world = simulate(seed, 'tcp')
    expect(world.complaints, `seed ${seed}`).toEqual([])
    answered += world.answered
  }
  expect(answered).toBeGreaterThan(seeds)
})

test('a world follows from its seed', () => {
  expect(simulate(7)).toEqual(simulate(7))
  expect(simulate(7, 'tcp')).toEqual(simulate(7, 'tcp'))
})
