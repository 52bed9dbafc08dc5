import { setImmediate as nextTurn } from 'node:timers/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  addCustomer,
  addPlan,
  customerWith,
  endedCall,
  freshStore,
  ocsOn,
  plainRate,
  question,
  topUp,
} from '../../../support/books.ts'
import { readColumn, runSql } from '../../../support/stored.ts'
import { onSqlite } from '../../../support/on-sqlite.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import { followForCharging } from '../../../../engine/follow-changes.ts'
import { FileChanges } from '../../../../schema/changes/file-changes.ts'
import { openDatabase } from '../../../../schema/sqlite/open.ts'

const oneUnit = 1_000_000

test('a call that shows signs of life keeps what it holds', async () => {
  const { ocs, time, customerId } = await customerWith(oneUnit)
  await ocs.start()
  await ocs.authorize(question('a'))
  for (let minute = 0; minute < 60; minute += 1) {
    time.advance(60_000)
    ocs.alive(['a'], time.now())
  }
  expect(ocs.balanceOf(customerId)).toMatchObject({ reservedMicros: 600_000n })
})

test('while records cannot be stored they wait, and are stored once when that works again', async () => {
  const { ocs, pass, customerId, store, log } = await customerWith(2 * oneUnit)
  await ocs.authorize(question('a'))
  await runSql(store, 'ALTER TABLE cdr RENAME TO cdr_away')
  const stored = ocs.report(endedCall('a', 20))
  await pass(500)
  expect(log[0]).toBe('error billing: records cannot be stored')
  expect(ocs.stats().waitingWrites).toBe(1)
  expect(ocs.balanceOf(customerId)).toMatchObject({ balanceMicros: BigInt(2 * oneUnit) })
  await runSql(store, 'ALTER TABLE cdr_away RENAME TO cdr')
  for (let tries = 0; tries < 3; tries += 1) await pass(1_000)
  await stored
  expect(ocs.balanceOf(customerId)).toMatchObject({ balanceMicros: 1_400_000n, reservedMicros: 0n })
  expect(ocs.stats().waitingWrites).toBe(0)
})

test('a record that the database refuses for ever does not hold up the others', async () => {
  const { ocs, time, customerId, store } = await customerWith(2 * oneUnit)
  await ocs.authorize(question('bad'))
  await ocs.authorize(question('good'))
  const bad = ocs.report(endedCall('bad', 20, { endedAt: Number.NaN }))
  const good = ocs.report(endedCall('good', 20))
  time.advance(100)
  await expect(bad).rejects.toThrow(/not.null/i)
  await good
  expect(await readColumn(store, 'SELECT call_uuid FROM cdr')).toEqual(['good'])
  expect(ocs.balanceOf(customerId)).toMatchObject({ balanceMicros: 1_400_000n, reservedMicros: 0n })
})

onSqlite('file')('money that another process moves is noticed within a second', async () => {
  const path = join(temporaryFolder(), 'tollgate.db')
  const store = freshStore(path)
  const planId = await addPlan(store, [plainRate])
  const customerId = await addCustomer(store, { name: '+15550001', rate_plan_id: planId })
  const { ocs, time } = await ocsOn(store)
  const { schedule, every } = time
  const changes = new FileChanges(store, { schedule, every, log: () => undefined })
  followForCharging(changes, ocs)
  await changes.start()
  const other = openDatabase(path)
  await topUp((await ocsOn(other)).ocs, customerId, oneUnit)
  other.close()
  expect(await ocs.authorize(question('a', '1555'))).toMatchObject({ kind: 'denied' })
  time.advance(1_000)
  await nextTurn()
  expect(await ocs.authorize(question('a', '1555'))).toMatchObject({ kind: 'granted' })
  store.close()
})
