import { expect, test } from 'vitest'
import { reportQuery } from '../../../../../../control/console/web/screens/calls/report-query.ts'
import { openControl, startOfTime } from '../../../../../support/control.ts'

const period = 'start_date=2025-12-31T00%3A00%3A00.000Z&end_date=2026-01-01T00%3A00%3A00.000Z'

test.each([
  ['nothing', {}, period],
  ['a number', { by: 'called', for: '+49' }, `${period}&called=%2B49`],
  [
    'a result and a cause',
    { disposition: 'NO ANSWER', by: 'cause', for: 'x' },
    `${period}&disposition=NO+ANSWER&cause=x`,
  ],
  [
    'what the API does not know',
    { days: '9999', disposition: 'x', by: 'format', for: 'csv' },
    period,
  ],
])('a search for %s is a query of the API', async (_, query, words) => {
  expect(reportQuery(query, startOfTime)).toBe(words)
  const control = openControl()
  const path = `/reports/cdrs?${words}&order=newest&limit=200&page=1`
  expect((await control.request(path, { token: control.key() })).status).toBe(200)
})
