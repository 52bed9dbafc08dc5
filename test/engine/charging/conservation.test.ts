import fc from 'fast-check'
import { test } from 'vitest'
import { isOnPostgres } from '../../support/on-sqlite.ts'
import { conserved, steps } from '../../support/money-world.ts'

test('Σ ledger is the balance, and Σ reservations and debits stays within balance and credit', async () => {
  // The bench takes 10,000. On a server each takes twenty times as long.
  const numRuns = isOnPostgres ? 40 : 200
  await fc.assert(fc.asyncProperty(steps, conserved), { numRuns, seed: 20_260_105 })
})
