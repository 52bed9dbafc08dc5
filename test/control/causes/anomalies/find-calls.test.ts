import { expect, test } from 'vitest'
import { findInCalls } from '../../../../control/causes/anomalies/find-calls.ts'
import { openToolRig, storeRecord } from '../../../support/tools-rig.ts'
import { runSql } from '../../../support/stored.ts'

const CUSTOMERS = 60

test('however many customers have an incident, the fifty worst are looked at, with a pause after each', async () => {
  const rig = await openToolRig()
  await runSql(rig.store, 'DELETE FROM cdr')
  const span = { from: rig.now() - 86_400_000, before: rig.now() + 1 }
  for (let customer = 1; customer <= CUSTOMERS; customer += 1)
    for (let call = 0; call < (customer === CUSTOMERS ? 5 : 4); call += 1)
      await storeRecord(rig, 1, `${customer} ${call}`, {
        ...{ customer_id: customer, denial_code: 'insufficient_funds', sip_code: 402 },
        ...{ disposition: 'FAILED', answer_stamp: null, billsec: 0, cost_micros: 0 },
      })
  let pauses = 0
  const pause = () => {
    pauses += 1
    return Promise.resolve()
  }
  const { store, engine } = rig
  const world = { store, engine, ocs: undefined, tenantId: null, domain: null, pause }
  const findings = await findInCalls(world, span, new Set(['wallet']))
  expect(findings).toHaveLength(50)
  expect(findings[0]?.subject).toBe(`customer ${CUSTOMERS}`)
  expect(pauses).toBeGreaterThanOrEqual(50)
})
