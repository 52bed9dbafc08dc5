/** Calls at the dearest prices: a few thousand come to more than 64 bits can hold. */
import { expect, test } from 'vitest'
import { type MarginReport, margins } from '../../../control/reports/margins.ts'
import { answeredCall, openReportRig } from '../../support/report-rig.ts'
import { readRow, runSql } from '../../support/stored.ts'
import { DAY, placeOf, resultOf, rollUpAt, summarizeAt } from '../../support/summed-calls.ts'

/** A minute of 1,000,000 units with a first increment of a day. */
const dearest = 1_440_000_000_000_000
const calls = 7_000
const from = answeredCall.startedAt - (answeredCall.startedAt % DAY)

test('sums end at nine trillion units, and every report goes on', async () => {
  const rig = await openReportRig()
  const acme = await rig.tenant('acme')
  const carrierCost = { costMicros: dearest, prefix: '49', currency: 'USD', tenantId: acme }
  const ours = { direction: 'outbound', tenantId: acme, carrier: 'ours', carrierCost } as const
  await rig.store(ours, dearest)
  const row = await readRow(rig.database, 'SELECT * FROM cdr')
  const others = Object.keys(row ?? {})
    .filter((name) => !['id', 'call_uuid', 'start_stamp'].includes(name))
    .join(', ')
  const copies = async (start: number) =>
    runSql(
      rig.database,
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${calls - (start === 0 ? 1 : 0)})
       INSERT INTO cdr (call_uuid, start_stamp, ${others})
       SELECT '1' || substr(call_uuid, 2, 23) || substr(CAST(1000000000000 + ${start} + i AS TEXT), 2),
         start_stamp + i, ${others} FROM n, cdr WHERE call_uuid < '1'`,
    )
  const place = placeOf(rig.database)
  const report = (): Promise<MarginReport> =>
    resultOf(
      margins(place, {
        ...{ tenantId: null, isOwn: false, groupBy: 'carrier', limit: 20, offset: 0 },
        ...{ from, before: from + DAY },
      }),
    )
  const largest = '9000000000000.00'
  for (const start of [0, calls, 2 * calls]) {
    await copies(start)
    expect((await report()).groups).toMatchObject([{ group: 'ours', margin: '0.00' }])
    expect(await rollUpAt(place)).toBe(0)
    expect((await report()).groups).toMatchObject([
      { calls: start + calls, revenue: largest, carrier_cost: largest },
    ])
    const asked = { from, before: from + DAY, groupBy: 'carrier' } as const
    const { groups } = await summarizeAt(place, asked)
    expect(groups).toMatchObject([{ cost: { USD: largest } }])
  }
})
