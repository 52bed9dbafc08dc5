import { expect, test } from 'vitest'
import { pageOf, reportQuery } from '../../../../../control/console/web/screens/report-query.ts'
import { openControl, startOfTime } from '../../../../support/control.ts'

const period = 'start_date=2025-12-31T00%3A00%3A00.000Z&end_date=2026-01-01T00%3A00%3A00.000Z'

test.each([
  ['nothing', {}, period],
  ['either number', { for: '+49' }, `${period}&number=%2B49`],
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
  const control = await openControl()
  const path = `/reports/cdrs?${words}&order=newest&limit=200&page=1`
  expect((await control.request(path, { token: await control.key() })).status).toBe(200)
})

test.each([
  [{}, 0, { first: 1, last: 0, newer: undefined, older: undefined }],
  [{}, 200, { first: 1, last: 200, newer: undefined, older: undefined }],
  [{}, 201, { first: 1, last: 200, newer: undefined, older: 2 }],
  [{ page: '2' }, 201, { first: 201, last: 201, newer: 1, older: undefined }],
  // There were more rows when the address was made.
  [{ page: '9' }, 201, { first: 1601, last: 201, newer: 2, older: undefined }],
  [{ page: 'x' }, 201, { first: 1, last: 200, newer: undefined, older: 2 }],
])('the address %o shows of %i rows the page %o', (query, count, page) => {
  expect(pageOf(query, count)).toEqual(page)
})
