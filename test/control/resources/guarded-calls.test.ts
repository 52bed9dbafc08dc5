import { expect, test } from 'vitest'
import { guardedCalls } from '../../../control/resources/guard-store.ts'
import { endedCall } from '../../support/books.ts'
import { openResources } from '../../support/resources.ts'
import { storeCall } from '../../support/stored-calls.ts'

test('the calls of a busy day are counted a thousand at a time: SIP gets its turn between them', async () => {
  const { store, now } = await openResources()
  for (let index = 0; index < 2_500; index += 1)
    await storeCall(
      store,
      endedCall(`call ${index}`, 60, {
        customerId: 1,
        tenantId: 1,
        calledNumber: '+1900555',
        startedAt: now() - 7_200_000 - index * 1_000,
      }),
      { costMicros: 1_000, currency: 'USD' },
    )
  let turns = 0
  let next = setImmediate(function count() {
    turns += 1
    next = setImmediate(count)
  })
  const brake = { scope: 'customer', scopeId: 1, prefix: '1900', extension: null } as const
  const affected = await guardedCalls(brake, {
    store,
    now,
    ocs: { callsUnder: () => 0, exitCodes: undefined },
  })
  clearImmediate(next)
  expect(affected).toMatchObject({ calls_last_hour: 0, calls_last_day: 2_500, spent_last_day: 2.5 })
  expect(turns).toBeGreaterThanOrEqual(3)
})
