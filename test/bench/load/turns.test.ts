/** A comparison of two programs says only what is fair. */
import { expect, test } from 'vitest'
import { ratioOf, type Turn } from './turns.ts'

/** A turn of a hundred calls, of which `succeeded` took `micros` each. */
const turn = (succeeded: number, ...micros: readonly number[]): Turn => ({
  result: {
    calls: 100,
    succeeded,
    refused: 0,
    retransmissions: 0,
    setupP50Ms: 2,
    setupP99Ms: 4,
  },
  micros,
  lag: undefined,
})

test('a ratio is the median of rounds, with all the parts of the peer', () => {
  const own = [turn(100, 300), turn(100, 330), turn(100, 600)]
  const other = [turn(100, 400, 200), turn(100, 500, 100), turn(100, 300, 300)]
  expect(ratioOf(own, other, 'kamailio')).toBe('0.55 (0.50 to 1.00)')
})

test('a round in which one of both lost calls is in no ratio', () => {
  const own = [turn(100, 300), turn(100, 300), turn(100, 300)]
  const other = [turn(100, 600), turn(90, 6_000), turn(100, 600)]
  expect(ratioOf(own, other, 'kamailio')).toBe('0.50 (0.50 to 0.50) in 2 of 3 rounds')
})

test('a peer that loses calls at a rate is not compared there, however dear it is', () => {
  const own = [turn(100, 300), turn(100, 300)]
  const other = [turn(67, 5_000), turn(94, 5_000)]
  expect(ratioOf(own, other, 'same job')).toBe(
    'not comparable at this rate: same job did not hold it',
  )
  expect(ratioOf(own, [], 'same job')).toBe(
    'not comparable at this rate: same job held no lower one',
  )
})

test('a program that loses calls itself is not compared either', () => {
  const own = [turn(90, 300), turn(100, 300)]
  const other = [turn(100, 600), turn(100, 600)]
  expect(ratioOf(own, other, 'kamailio')).toBe(
    'not comparable at this rate: this program did not hold it',
  )
})
