import { expect, test } from 'vitest'
import { auditQuery } from '../../../../../control/console/web/screens/audit-query.ts'

test('only what the API knows is asked for', () => {
  expect(auditQuery({})).toBe('')
  expect(auditQuery({ q: 'x', sort: '-at', outcome: 'wrong', by: 'robots', from: 'soon' })).toBe('')
  expect(auditQuery({ actor: 'user:a&b', by: 'agents', outcome: 'failed' })).toBe(
    '&actor=user%3Aa%26b&outcome=failed&agents=true',
  )
})

test('times are those of the zone of the viewer', () => {
  const from = new Date(2026, 0, 2, 3, 4).toISOString()
  expect(auditQuery({ by: 'others', from: '2026-01-02T03:04' })).toBe(
    `&agents=false&start_date=${encodeURIComponent(from)}`,
  )
})
