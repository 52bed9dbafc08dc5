import fc from 'fast-check'
import { test } from 'vitest'
import { conserved, steps } from '../../support/money-world.ts'

test('Σ ledger is the balance, and Σ reservations and debits stays within balance and credit', async () => {
  await fc.assert(fc.asyncProperty(steps, conserved), { numRuns: 500, seed: 20_260_105 })
})
