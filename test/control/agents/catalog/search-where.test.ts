import { expect, test } from 'vitest'
import { openReportRig, uuidOf } from '../../../support/report-rig.ts'

test('search_cdrs takes the filters of the report, page by page in either order', async () => {
  const { store, key, request } = await openReportRig()
  for (const seconds of [10, 30, 20, 5]) await store({ billsec: seconds }, seconds * 1_000)
  const token = await key({ name: 'tools' })
  const period = { start: '2026-01-01', end: '2026-02-01' }
  const search = (body: object) =>
    request('/api/v1/mcp/tools/search_cdrs', { token, body: { ...period, ...body } })
  for (const [order_by, uuids] of [
    ['newest', [3, 2, 1]],
    ['cost', [2, 3, 1]],
  ] as const) {
    const found: string[] = []
    let cursor: string | undefined
    for (let page = 0; page < 3; page += 1) {
      const asked = { where: 'billsec_from=10&code=200,486', order_by, limit: 1, cursor }
      const { body } = await search(asked)
      const { data } = body as { data: { records: { call_uuid: string }[]; cursor: string | null } }
      found.push(...data.records.map((each) => each.call_uuid))
      cursor = data.cursor ?? undefined
    }
    expect(found).toEqual(uuids.map(uuidOf))
    expect(cursor).toBeUndefined()
  }
  const wrong = await search({ where: 'code=99' })
  expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining('must be a SIP code')])
  const twice = await search({ where: 'disposition=BUSY', disposition: 'BUSY' })
  expect([twice.status, twice.text]).toEqual([400, expect.stringContaining('disposition')])
})
