import { expect, test } from 'vitest'
import { callSums } from '../../../../control/reports/call-sums.ts'
import { openToolRig, storeRecord } from '../../../support/tools-rig.ts'
import { runSql } from '../../../support/stored.ts'

test('a statement reads a thousand records, however busy an hour is: SIP gets its turn between them', async () => {
  const { store, ...rig } = await openToolRig()
  await runSql(store, 'DELETE FROM cdr')
  const before = rig.now()
  const from = before - 3_600_000
  for (let index = 0; index < 2_500; index += 1)
    await storeRecord({ store, ...rig }, 1, `call ${index}`, { start_stamp: from + index * 1_000 })
  let pauses = 0
  const pause = () => {
    pauses += 1
    return Promise.resolve()
  }
  const sums = await callSums({ store, tenantId: 1, pause }, from, before)
  expect(sums).toMatchObject([{ calls: 2_500, firstAt: from, lastAt: from + 2_499_000 }])
  expect(pauses).toBe(3)
})
